// Two servers on one PostgreSQL database: a client whose calls go to them in turn must not notice.
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import test from 'node:test'
import { freshDatabase, startCairn } from './cairn.mjs'
import { documentStory, taskStory } from './story.mjs'

const me = { name: 'cairn-e2e', version: '1.0.0' }

test('replicas on PostgreSQL', async (t) => {
  const env = { CAIRN_DATABASE_URL: await freshDatabase(t) }
  // At once, so that they also meet over the schema.
  const replicas = await Promise.all([startCairn(t, { env }), startCairn(t, { env })])
  const token = await replicas[0].token()

  for (const [name, client, Http] of [
    ['2025-11-25', new Client(me), StreamableHTTPClientTransport],
    ['2026-07-28', new ModernClient(me, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), ModernHttp],
  ]) {
    await t.test(name, async (t) => {
      t.after(() => client.close())
      let turn = 0
      await client.connect(new Http(new URL(replicas[0].url), {
        requestInit: { headers: { Authorization: `Bearer ${token}` } },
        fetch: (_, init) => fetch(replicas[turn++ % replicas.length].url, init),
      }))
      await taskStory(client)
      await documentStory(client)
    })
  }

  await t.test('what is written on one is told on the other', async (t) => {
    const on = async (replica) => {
      const client = new ModernClient(me, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
      t.after(() => client.close())
      await client.connect(new ModernHttp(new URL(replica.url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }))
      return client
    }
    await documentStory(await on(replicas[0]), await on(replicas[1]))
  })
})
