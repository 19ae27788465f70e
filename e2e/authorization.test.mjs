// The conformance suite's scenarios for authorization servers: against the test build, in which whoever asks is let in, and
// against the product, where a person signs in and answers on its page.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { cleanEnv, freePort, npm, start, tempDir, until } from './cairn.mjs'
import { startWithPerson, visit } from './person.mjs'

const suite = npm('@modelcontextprotocol', 'conformance', 'dist', 'index.js')
const server = process.env.CAIRN_TEST_CONFORMANCE ?? path.join(import.meta.dirname, '..', 'bin', 'conformance-server')
const scenarios = ['authorization-code-grant', 'authorization-server-metadata-endpoint']

test('test build', async (t) => {
  const home = await tempDir(t)
  const port = await freePort()
  const args = ['-data', path.join(home, 'data'), '-redirect', callback(port)]
  const fixture = start(t, server, args, cleanEnv(home))
  await until(fixture, () => fixture.printed.stdout.split('\n').length > 2)
  const [url, client] = fixture.printed.stdout.split('\n')
  await check(home, { url, client, port, open: fetch })
})

test('product', async (t) => {
  const cairn = await startWithPerson(t, { env: { CAIRN_CLIENT_METADATA: 'true' } })
  const port = await freePort()
  const response = await fetch(new URL('/oauth/register', cairn.url), {
    method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Conformance', redirect_uris: [callback(port)] }),
  })
  const { client_id: client } = await response.json()
  await check(cairn.home, { url: cairn.url, client, port, open: visit })
})

const callback = (port) => `http://127.0.0.1:${port}/callback`

/** Runs the suite, which prints the address that a person is to open, and asks that all it checked is well. */
async function check(home, { url, client, port, open }) {
  const results = path.join(home, 'results')
  const child = spawn(process.execPath, [suite, 'authorization', '--url', new URL(url).origin, '--client-id', client,
    '--resource', url, '-p', String(port), '--output-dir', results], { env: cleanEnv(home), timeout: 60_000 })
  let text = ''
  let opening
  child.stderr.setEncoding('utf8').on('data', (d) => (text += d))
  child.stdout.setEncoding('utf8').on('data', (d) => {
    text += d
    const address = text.match(/^(http\S+\/oauth\/authorize\?\S+)\n/m)?.[1]
    if (address) opening ??= open(address).catch((e) => (text += `\nthe page: ${e.stack}`) && child.kill())
  })
  const [code] = await once(child, 'close')
  await opening
  assert.equal(code, 0, text)

  const ran = []
  for (const entry of await readdir(results)) {
    ran.push(entry.replace(/^authorization-server-/, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/, ''))
    const checks = JSON.parse(await readFile(path.join(results, entry, 'checks.json'), 'utf8'))
    assert.ok(checks.length)
    for (const c of checks) assert.equal(c.status, 'SUCCESS', `${c.id}: ${c.errorMessage}\n${text}`)
  }
  assert.deepEqual(ran.sort(), scenarios)
}
