// Real clients that are told the server's URL and nothing else: they register, send the person to the consent page, fetch
// tokens and work.
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import test from 'node:test'
import { freePort, npm, run } from './cairn.mjs'
import { browserFor, spoil, startWithPerson, visit } from './person.mjs'
import { checkTools, taskStory } from './story.mjs'

const me = { name: 'cairn-e2e', version: '1.0.0' }

const sdks = {
  'SDK v1': { client: () => new Client(me), Http: StreamableHTTPClientTransport },
  'SDK v2, 2026-07-28': {
    client: () => new ModernClient(me, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), Http: ModernHttp,
  },
  'SDK v2, older': { client: () => new ModernClient(me), Http: ModernHttp },
}

/** What an SDK asks of the program around it: a place for what it gets, a callback address, a browser. */
async function provider(t, answers) {
  let arrived
  const server = createServer((req, res) => {
    arrived = new URL(req.url, 'http://127.0.0.1')
    res.end('You can close this page.')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const redirect = `http://127.0.0.1:${server.address().port}/callback`
  const kept = {}
  const visits = []
  return {
    answers, visits, kept,
    arrived: () => arrived,
    get redirectUrl() { return redirect },
    get clientMetadata() {
      return { client_name: 'SDK', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'], token_endpoint_auth_method: 'none' }
    },
    state: () => 'a state',
    clientInformation: () => kept.client,
    saveClientInformation: (c) => { kept.client = c },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens },
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (v) => { kept.verifier = v },
    discoveryState: () => kept.discovery,
    saveDiscoveryState: (d) => { kept.discovery = d },
    async redirectToAuthorization(url) { visits.push({ url, ...(await visit(String(url), this.answers)) }) },
  }
}

/**
 * Connects a client up to where the SDK has sent the person away and given up, and hands it the code that came back. Hello
 * needs no token, so it is the first call that may fail.
 */
async function letIn({ client, Http }, url, auth) {
  const c = client()
  const transport = new Http(url, { authProvider: auth })
  await assert.rejects(async () => {
    await c.connect(transport)
    await c.listTools()
  }, (e) => { if (auth.visits.length !== 1) throw e; return true })
  await finish(transport, auth)
  await c.close()
}

test('the SDKs', async (t) => {
  const cairn = await startWithPerson(t)
  for (const [name, { client, Http }] of Object.entries(sdks)) {
    await t.test(name, async (t) => {
      const auth = await provider(t, { write: true, stay: true })
      await letIn({ client, Http }, new URL(cairn.url), auth)

      const c = client()
      t.after(() => c.close())
      await c.connect(new Http(new URL(cairn.url), { authProvider: auth }))
      await taskStory(c)
      assert.equal(auth.visits.length, 1)

      // A token that no longer counts is refreshed without the person.
      const before = auth.kept.tokens
      assert.ok(before.refresh_token)
      auth.kept.tokens = { ...before, access_token: before.access_token.slice(0, -4) + 'AAAA' }
      await taskStory(c)
      assert.notEqual(auth.kept.tokens.refresh_token, before.refresh_token)
      assert.equal(auth.visits.length, 1)
    })

    for (const stay of [false, true]) {
      await t.test(`${name}, more rights later${stay ? ', having stayed' : ''}`, async (t) => {
        const auth = await provider(t, { write: false, stay })
        await letIn({ client, Http }, new URL(cairn.url), auth)
        const c = client()
        t.after(() => c.close())
        const transport = new Http(new URL(cairn.url), { authProvider: auth })
        await c.connect(transport)
        checkTools((await c.listTools()).tools)

        auth.answers = { write: true, stay }
        const write = () => c.callTool({ name: 'create_personal_task', arguments: { name: 'Ask for more' } })
        if (name === 'SDK v1' && stay) {
          // It refreshes instead of asking the person, and a refresh never adds rights. It must end there, and a new sign-in cure it.
          await assert.rejects(write(), /403 after trying upscoping/)
          assert.equal(auth.visits.length, 1)
          auth.kept.tokens = undefined
          await assert.rejects(write(), { message: 'Unauthorized' })
        } else {
          await assert.rejects(write(), { message: 'Unauthorized' })
        }
        assert.equal(auth.visits.length, 2)
        assert.equal(auth.visits[1].again, true, 'it is known as the agent that it was')
        await finish(transport, auth)
        assert.equal((await write()).structuredContent.result, 'created')
      })
    }
  }

  await t.test('a person who says no', async (t) => {
    const auth = await provider(t, { connect: false })
    const c = new Client(me)
    t.after(() => c.close())
    await assert.rejects(async () => {
      await c.connect(new StreamableHTTPClientTransport(new URL(cairn.url), { authProvider: auth }))
      await c.listTools()
    }, { message: 'Unauthorized' })
    assert.equal(auth.arrived().searchParams.get('error'), 'access_denied')
    assert.equal(auth.arrived().searchParams.get('code'), null)
  })
})

async function finish(transport, auth) {
  const got = auth.arrived().searchParams
  assert.equal(got.get('state'), 'a state')
  assert.equal(got.get('iss'), auth.visits.at(-1).url.origin)
  await transport.finishAuth(got.get('code'), got.get('iss'))
}

test('mcp-remote', async (t) => {
  const cairn = await startWithPerson(t)

  /** Runs mcp-remote for a person, with a client of its own in front. */
  const session = async (person, work) => {
    const client = new Client(me)
    let stderr = ''
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [npm('mcp-remote', 'dist', 'proxy.js'), cairn.url, '--allow-http', '--transport', 'http-only'],
      env: person.env, stderr: 'pipe',
    })
    transport.stderr.on('data', (d) => (stderr += d))
    try {
      await client.connect(transport)
      await work(client)
    } catch (e) {
      e.message += `\n${stderr}\n${JSON.stringify(await person.opened(), null, 1)}`
      throw e
    } finally {
      await client.close()
    }
  }

  await t.test('lets itself in, stays, refreshes', async (t) => {
    const person = await browserFor(t)
    await session(person, taskStory)
    check(await person.opened(1), 1)
    await session(person, taskStory)
    const before = await spoil(person.home)
    await session(person, taskStory)
    assert.notDeepEqual(await spoil(person.home), before, 'no new token was kept')
    check(await person.opened(1), 1)
  })

  await t.test('more rights later', async (t) => {
    const person = await browserFor(t, { write: false, stay: false })
    await session(person, async (client) => {
      checkTools((await client.listTools()).tools)
      await person.answer({ write: true, stay: false })
      const made = await client.callTool({ name: 'create_personal_task', arguments: { name: 'Ask for more' } })
      assert.equal(made.structuredContent?.result, 'created', JSON.stringify(made))
    })
    check(await person.opened(2), 2)
    assert.equal((await person.opened())[1].again, true)
  })
})

const inspector = npm('@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js')

for (const era of ['legacy', 'modern']) {
  test(`Inspector, ${era}`, async (t) => {
    const cairn = await startWithPerson(t)
    const person = await browserFor(t, {}, {
      MCP_AUTO_OPEN_ENABLED: 'true',
      MCP_OAUTH_CALLBACK_URL: `http://127.0.0.1:${await freePort()}/oauth/callback`,
      MCP_INSPECTOR_SECRET_STORE: 'file', // else it forgets the tokens where there is no keychain
    })
    const inspect = async (...args) => {
      const r = await run(process.execPath,
        [inspector, '--cli', '--protocol-era', era, '--format', 'json', cairn.url, '--transport', 'http', ...args], { env: person.env })
      assert.equal(r.code, 0, `${r.stdout}\n${r.stderr}\n${JSON.stringify(await person.opened(), null, 1)}`)
      return JSON.parse(r.stdout.slice(r.stdout.indexOf('{'))).result
    }
    checkTools((await inspect('--method', 'tools/list')).tools)
    const made = await inspect('--method', 'tools/call', '--tool-name', 'create_personal_task', '--tool-args-json', '{"name":"Oil the hinges"}')
    assert.equal(made.structuredContent.result, 'created')
    const before = await spoil(person.home)
    checkTools((await inspect('--method', 'tools/list')).tools)
    assert.notDeepEqual(await spoil(person.home), before, 'no new token was kept')
    check(await person.opened(1), 1)
  })
}

function check(opened, times) {
  assert.deepEqual(opened.map((o) => o.error), Array(times).fill(undefined), JSON.stringify(opened, null, 1))
}
