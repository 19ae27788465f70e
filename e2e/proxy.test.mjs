// Cairn behind the real nginx with TLS, set up as docs/self-hosting.md says. What runs there is in proxy.mjs, in a process
// that trusts the certificate made here: Node reads it only at its start.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'
import { tempDir } from './cairn.mjs'

const exec = promisify(execFile)

test('behind nginx', async (t) => {
  const dir = await tempDir(t)
  await exec('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost', '-keyout', path.join(dir, 'key.pem'), '-out', path.join(dir, 'cert.pem')])
  const { stdout } = await exec(process.execPath, [path.join(import.meta.dirname, 'proxy.mjs')], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_EXTRA_CA_CERTS: path.join(dir, 'cert.pem'), PROXY_TEST_DIR: dir }, timeout: 120_000,
  }).catch((e) => assert.fail(`${e.message}\n${e.stdout}\n${e.stderr}`))
  t.diagnostic(stdout.split('\n').filter((l) => /^# (pass|fail)/.test(l)).join(' '))
})
