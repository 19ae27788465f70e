// Run by proxy.test.mjs: the whole way of a client through nginx, and what must not depend on the proxy.
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { bin, freePort, npm, ok, start } from './cairn.mjs'
import { browserFor, startWithPerson } from './person.mjs'
import { documentStory, taskStory } from './story.mjs'

const dir = process.env.PROXY_TEST_DIR

/** nginx with the server block of docs/self-hosting.md, names and ports changed. */
async function nginx(t, port, upstream) {
  const docs = await readFile(path.join(import.meta.dirname, '..', 'docs', 'self-hosting.md'), 'utf8')
  const block = docs.match(/```nginx\n([^`]*)```/)[1]
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`).replace('cairn.example.org', 'localhost')
    .replace('/etc/ssl/cairn.pem', path.join(dir, 'cert.pem')).replace('/etc/ssl/cairn.key', path.join(dir, 'key.pem'))
    .replaceAll('127.0.0.1:3000;', `127.0.0.1:${upstream}; proxy_bind 127.0.0.2;`)
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((n) => `${n}_temp_path ${dir}/${n};`).join(' ')
  const conf = path.join(dir, 'nginx.conf')
  await writeFile(conf, `${process.getuid() === 0 ? 'user root;' : ''} daemon off; pid ${dir}/nginx.pid; error_log ${dir}/error.log;
events {} http { access_log off; ${temp} ${block} }\n`)
  return start(t, 'nginx', ['-c', conf, '-p', dir, '-e', path.join(dir, 'error.log')], { PATH: `${process.env.PATH}:/usr/sbin` })
}

test('a client comes in through nginx, whatever the proxy calls the server', async (t) => {
  const [port, upstream] = [await freePort(), await freePort()]
  await nginx(t, port, upstream)
  const origin = `https://localhost:${port}`
  // 127.0.0.2 is the proxy; the client's own 127.0.0.1 isn't one, so what it forges doesn't count.
  const server = await startWithPerson(t, { flags: ['--listen', `127.0.0.1:${upstream}`, '--public-url', `HTTPS://LocalHost:${port}//`, '--trusted-proxies', '127.0.0.2'] })
  assert.equal(server.url, `${origin}/mcp`)

  await t.test('every document names the public address, by whichever way it is read', async () => {
    const texts = {}
    for (const base of [origin, `http://127.0.0.1:${upstream}`]) {
      for (const p of ['oauth-protected-resource', 'oauth-protected-resource/mcp', 'oauth-authorization-server', 'oauth-authorization-server/oauth', 'openid-configuration']) {
        const doc = await (await fetch(`${base}/.well-known/${p}`)).json()
        assert.equal(doc.issuer ?? doc.authorization_servers[0], origin, p)
        if (doc.resource) assert.equal(doc.resource, `${origin}/mcp`)
        texts[p] ??= JSON.stringify(doc)
        assert.equal(JSON.stringify(doc), texts[p])
      }
      const refused = await fetch(`${base}/mcp`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' })
      assert.equal(refused.status, 401)
      assert.match(refused.headers.get('www-authenticate'), new RegExp(`resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`))
    }
  })

  await t.test('answers carry HSTS, and cookies are __Host- and Secure', async () => {
    const r = await fetch(`${origin}/sign-in`, { headers: { Accept: 'text/html' } })
    assert.equal(r.status, 200)
    assert.match(r.headers.get('strict-transport-security'), /max-age=31536000/)
    const doc = await (await fetch(`${origin}/oauth/register`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/cb'] }) })).json()
    const q = new URLSearchParams({ response_type: 'code', client_id: doc.client_id, redirect_uri: 'http://127.0.0.1:9/cb', code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' })
    const page = await fetch(`${origin}/oauth/authorize?${q}`, { headers: { 'X-Forwarded-For': '203.0.113.66', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http', Forwarded: 'for=203.0.113.66' } })
    const cookie = page.headers.getSetCookie()[0]
    assert.match(cookie, /^__Host-cairn-browser=.*Secure/)
    // Sent to the owner's inbox, the request shows where it really came from.
    const html = await page.text()
    assert.match(html, /data-request="/, `${page.status} ${html}`)
    const id = html.match(/data-request="([^"]+)"/)[1]
    await fetch(`${origin}/oauth/authorization-requests/${id}/route`, { method: 'POST', redirect: 'manual', headers: { Origin: origin, Cookie: cookie.split(';')[0] }, body: new URLSearchParams({ username: 'owner' }) })
    const inbox = JSON.parse(await ok(bin, ['call', 'list_requests', '--json', '--data', path.join(server.home, 'data')], { env: server.env }))
    assert.equal(inbox.requests[0].address, '127.0.0.1')
  })

  await t.test('who listens hears of changes at once: the proxy holds nothing back', async (t) => {
    const token = (await ok(bin, ['token', 'create', '--name', 'listener', '--rate', '0', '--data', path.join(server.home, 'data')], { env: server.env })).trim()
    const client = new ModernClient({ name: 'cairn-e2e', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    t.after(() => client.close())
    await client.connect(new ModernHttp(new URL(`${origin}/mcp`), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }))
    await documentStory(client)
  })

  await t.test('mcp-remote connects by the URL alone', async (t) => {
    const b = await browserFor(t, {}, { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS })
    const client = new Client({ name: 'cairn-e2e', version: '1.0.0' })
    t.after(() => client.close())
    try {
      await client.connect(new StdioClientTransport({ command: process.execPath, args: [npm('mcp-remote', 'dist', 'proxy.js'), server.url, '--transport', 'http-only'], env: b.env, stderr: 'ignore' }))
    } catch (e) {
      assert.fail(`${e.message}\n${JSON.stringify(await b.opened(), null, 1)}`)
    }
    await taskStory(client)
  })

  await t.test('files larger than any other body go up and come back', async () => {
    const token = (await ok(bin, ['token', 'create', '--name', 'files', '--rate', '0', '--data', path.join(server.home, 'data')], { env: server.env })).trim()
    const Authorization = `Bearer ${token}`
    const bytes = Buffer.alloc(30 << 20, 'water the ferns ')
    const up = await fetch(`${origin}/api/files?name=large.txt`, { method: 'POST', headers: { Authorization }, body: bytes })
    const text = await up.text()
    assert.equal(up.status, 200, text)
    const { file } = JSON.parse(text)
    assert.equal(file.url, `${origin}/files/${file.id}`)
    const down = await fetch(file.url, { headers: { Authorization } })
    assert.equal(down.status, 200)
    assert.ok(bytes.equals(Buffer.from(await down.arrayBuffer())))
    assert.equal((await fetch(file.url)).status, 401)
  })

  await t.test('metrics are not forwarded', async () => {
    assert.equal((await fetch(`${origin}/metrics`)).status, 404)
  })
})
