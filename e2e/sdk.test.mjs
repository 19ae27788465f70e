// The TypeScript SDKs: v1 speaks the versions with a handshake, v2 the stateless one and, asked to, the older.
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import assert from 'node:assert/strict'
import test from 'node:test'
import { bin, npm, startCairn, tempDir, cleanEnv } from './cairn.mjs'
import { documentStory, promptStory, taskStory } from './story.mjs'

const me = { name: 'cairn-e2e', version: '1.0.0' }

const clients = {
  'SDK v1, 2025-11-25': {
    client: () => new Client(me),
    Http: StreamableHTTPClientTransport,
    Stdio: StdioClientTransport,
  },
  'SDK v2, 2026-07-28': {
    client: () => new ModernClient(me, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    Http: ModernHttp,
    Stdio: ModernStdio,
  },
  'SDK v2, finding out': {
    client: () => new ModernClient(me, { versionNegotiation: { mode: 'auto' } }),
    Http: ModernHttp,
    Stdio: ModernStdio,
  },
  'SDK v2, older': {
    client: () => new ModernClient(me),
    Http: ModernHttp,
    Stdio: ModernStdio,
  },
}

const bearer = (token) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } })

async function withClient(t, client, transport) {
  t.after(() => client.close())
  await client.connect(transport)
  assert.equal(client.getServerVersion()?.name, 'Cairn')
  await taskStory(client)
  await promptStory(client)
  await documentStory(client)
}

test('HTTP', async (t) => {
  const cairn = await startCairn(t)
  const token = await cairn.token()
  assert.match(token, /^cairn_[A-Za-z0-9_-]+$/)

  for (const [name, { client, Http }] of Object.entries(clients)) {
    await t.test(name, async (t) => {
      await withClient(t, client(), new Http(new URL(cairn.url), bearer(token)))
    })
  }

  await t.test('all clients work at once', async (t) => {
    await Promise.all(Object.values(clients).map(({ client, Http }) =>
      withClient(t, client(), new Http(new URL(cairn.url), bearer(token)))))
  })

  await t.test('mcp-remote brings a stdio client to the server', async (t) => {
    const env = cleanEnv(await tempDir(t))
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [npm('mcp-remote', 'dist', 'proxy.js'), cairn.url, '--allow-http', '--transport', 'http-only',
        '--header', `Authorization: Bearer ${token}`],
      env,
      stderr: 'ignore',
    })
    await withClient(t, new Client(me), transport)
  })

  await t.test('one plain POST is enough, whatever it accepts', async () => {
    for (const accept of ['*/*', 'application/json', 'text/event-stream', 'application/json, text/event-stream']) {
      const response = await fetch(cairn.url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: accept, Authorization: `Bearer ${token}` },
        body: JSON.stringify({
          jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'list_projects', arguments: {} },
        }),
      })
      const body = await response.text()
      assert.equal(response.status, 200, `${accept}: ${body}`)
      const json = body.startsWith('{') ? body : body.match(/^data: ?(\{.*)$/m)[1]
      const { id, result } = JSON.parse(json)
      assert.equal(id, 7)
      assert.match(result.content[0].text, /^Projects/)
    }
  })

  await t.test('a client without a token is told where to get one', async (t) => {
    const client = new Client(me)
    t.after(() => client.close())
    await assert.rejects(async () => {
      await client.connect(new StreamableHTTPClientTransport(new URL(cairn.url)))
      await client.listTools()
    }, (e) => e.code === 401 || e.name === 'UnauthorizedError')
    const challenge = await refused(cairn.url)
    assert.match(challenge, /^Bearer .*resource_metadata="http/)
    assert.doesNotMatch(challenge, /error=/)
  })

  await t.test('a token that is wrong is called that', async () => {
    const challenge = await refused(cairn.url, { Authorization: 'Bearer cairn_wrong' })
    assert.match(challenge, /error="invalid_token"/)
  })

  await t.test('it ends when asked to, and tells who listens', async (t) => {
    const client = clients['SDK v2, 2026-07-28'].client()
    t.after(() => client.close())
    await client.connect(new ModernHttp(new URL(cairn.url), bearer(token)))
    const subscription = await client.listen({ resourcesListChanged: true })
    assert.deepEqual(await cairn.stop(), { code: 0, signal: null })
    assert.equal(await subscription.closed, 'graceful')
  })
})

test('stdio on local data', async (t) => {
  const home = await tempDir(t)
  for (const [name, { client, Stdio }] of Object.entries(clients)) {
    await t.test(name, async (t) => {
      const args = ['mcp', '--stdio', '--data', `${home}/data`]
      await withClient(t, client(), new Stdio({ command: bin, args, env: cleanEnv(home), stderr: 'inherit' }))
    })
  }
})

test('stdio in front of a server', async (t) => {
  const cairn = await startCairn(t)
  const token = await cairn.token()
  for (const [name, { client, Stdio }] of Object.entries(clients)) {
    await t.test(name, async (t) => {
      const args = ['mcp', '--stdio', '--server', new URL(cairn.url).origin, '--token', token]
      await withClient(t, client(), new Stdio({ command: bin, args, env: cairn.env, stderr: 'inherit' }))
    })
  }
})

/** The challenge of a tools/list that must be refused with 401. */
async function refused(url, headers = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  assert.equal(response.status, 401)
  await response.body?.cancel()
  return response.headers.get('www-authenticate')
}
