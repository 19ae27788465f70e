// One piece of work, the same for every client: whatever the transport and the protocol version, it must go alike.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Tools that a token with all areas sees, of those that this story and the next ones use. */
export const taskTools = [
  'create_personal_task', 'create_work_task', 'list_tasks', 'complete_task',
  'list_projects', 'get_project_context', 'log_session_summary',
]

/** client: {listTools() -> {tools}, callTool({name, arguments}) -> result}, as both TypeScript SDKs have it. */
export async function taskStory(client) {
  const { tools } = await client.listTools()
  checkTools(tools)
  assert.deepEqual((await client.listTools()).tools.map((t) => t.name), tools.map((t) => t.name), 'order of tools')

  const name = `Water the plants ${Date.now()}`
  const made = await call(client, 'create_personal_task', { name })
  assert.equal(made.structuredContent.result, 'created')
  const { id } = made.structuredContent
  assert.match(id, uuid)
  assert.ok(made.content[0].text.startsWith(`✅ Successfully created personal task: "${name}"`), made.content[0].text)
  assert.ok(made.content[0].text.includes(`📋 Task ID: ${id}`), made.content[0].text)

  const open = await call(client, 'list_tasks', { completed: false })
  assert.equal(open.structuredContent.count, open.structuredContent.tasks.length)
  assert.equal(find(open, id)?.text, name)
  assert.equal(find(open, id)?.completed, false)

  await call(client, 'complete_task', { task_id: id })
  assert.equal(find(await call(client, 'list_tasks', { completed: true }), id)?.completed, true)
  assert.equal(find(await call(client, 'list_tasks', { completed: false }), id), undefined)

  assert.match((await call(client, 'list_projects', {})).content[0].text, /^Projects \(\d+\)/)

  // What the model can put right comes back as a result that it sees, not as an error that its client swallows.
  const unknown = await client.callTool({ name: 'list_tasks', arguments: { colour: 'red' } })
  assert.equal(unknown.isError, true)
  assert.match(unknown.content[0].text, /colour/)
  const missing = await client.callTool({
    name: 'complete_task', arguments: { task_id: '00000000-0000-7000-8000-000000000000' },
  })
  assert.equal(missing.isError, true)
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), (e) => e.code === -32602)
}

export function checkTools(tools) {
  const names = tools.map((t) => t.name)
  for (const name of taskTools) {
    assert.ok(names.includes(name), `${name} is not among ${names.join(', ')}`)
  }
  for (const tool of tools) {
    assert.ok(tool.description, `${tool.name} has no description`)
    assert.equal(tool.inputSchema.type, 'object', tool.name)
    // Clients that pass schemas on to a model's API fail on these.
    assert.doesNotMatch(JSON.stringify(tool.inputSchema), /"null"/, tool.name)
    for (const key of ['anyOf', 'oneOf', 'allOf']) {
      assert.ok(!(key in tool.inputSchema), `${tool.name} has ${key} at the top of its schema`)
    }
  }
}

const find = (result, id) => result.structuredContent.tasks.find((t) => t.id === id)

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args })
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`)
  return result
}

/** What a person calls by name. client: as for taskStory, with listPrompts, getPrompt and complete. */
export async function promptStory(client) {
  const { prompts } = await client.listPrompts()
  assert.deepEqual(prompts.map((p) => p.name), ['plan_day', 'start_session', 'wrap_up_session'])
  const name = `Mend the fence ${Date.now()}`
  const { id } = (await call(client, 'create_personal_task', { name })).structuredContent

  const plan = await prompt(client, 'plan_day', { day: 'today' })
  const due = JSON.parse(plan.match(/`list_tasks (\{.*?\})`/)[1])
  assert.ok(find(await call(client, 'list_tasks', due), id), `${JSON.stringify(due)} lacks the task`)
  assert.match(await prompt(client, 'wrap_up_session', {}), /`capture_context /)
  assert.ok((await prompt(client, 'start_session', { topic: name, heap: 'Personal' })).includes(`[task ${id}]`), 'the pack lacks the task')
  assert.match(await prompt(client, 'start_session', {}), /Ask the owner/)
  await assert.rejects(client.getPrompt({ name: 'plan_day', arguments: { day: 'someday' } }), (e) => e.code === -32602 && /someday/.test(e.message))
  await assert.rejects(client.getPrompt({ name: 'nope' }), (e) => e.code === -32602)

  const { completion } = await client.complete({
    ref: { type: 'ref/prompt', name: 'start_session' }, argument: { name: 'heap', value: 'p' },
  })
  assert.deepEqual(completion.values, ['Personal'])
  await call(client, 'complete_task', { task_id: id })
}

async function prompt(client, name, args) {
  const { messages } = await client.getPrompt({ name, arguments: args })
  assert.deepEqual(messages.map((m) => [m.role, m.content.type]), [['user', 'text']])
  return messages[0].content.text
}

/**
 * Documents as resources. client: as for taskStory, with listResources and the like; where its version can be told of changes, also
 * listen and setNotificationHandler. write: who writes, if it isn't the client itself.
 */
export async function documentStory(client, write = client) {
  const title = `Beds ${randomUUID().slice(0, 8)}`
  const content = `# Spring\n\n${'- [ ] dig a bed, then another\n'.repeat(3000)}`
  const { id } = (await call(write, 'create_block', { title, content })).structuredContent
  const uri = `cairn://block/${id}`

  const { resources } = await client.listResources()
  assert.equal(resources.find((r) => r.uri === uri)?.title, title)
  const { resourceTemplates } = await client.listResourceTemplates()
  assert.deepEqual(resourceTemplates.map((t) => t.uriTemplate), ['cairn://block/{id}'])
  const { completion } = await client.complete({
    ref: { type: 'ref/resource', uri: 'cairn://block/{id}' }, argument: { name: 'id', value: title.toLowerCase() },
  })
  assert.deepEqual(completion.values, [`${title} ${id}`])

  let whole = ''
  for (let at = `cairn://block/${encodeURIComponent(completion.values[0])}`; at;) {
    const { contents } = await client.readResource({ uri: at })
    whole += contents[0].text
    at = contents[0]._meta['cairn/next']
    assert.equal(contents[1].text.includes('It goes on at'), Boolean(at))
  }
  assert.equal(whole, content)
  await assert.rejects(client.readResource({ uri: 'cairn://block/00000000-0000-7000-8000-000000000000' }), (e) => e.code === -32602)

  const modern = client.getProtocolEra?.() === 'modern'
  assert.deepEqual(client.getServerCapabilities().resources, modern ? { listChanged: true, subscribe: true } : {})
  if (modern) await hearStory(client, write, id, uri)
  await call(write, 'delete_block', { block_id: id })
}

/** What is changed is told, until the client has heard enough. */
export async function hearStory(client, write, id, uri) {
  const heard = []
  client.setNotificationHandler('notifications/resources/updated', (n) => heard.push(n.params.uri))
  client.setNotificationHandler('notifications/resources/list_changed', () => heard.push('list'))
  const absent = 'cairn://block/00000000-0000-7000-8000-000000000000'
  const subscription = await client.listen({ resourceSubscriptions: [uri, absent], resourcesListChanged: true })
  assert.deepEqual(subscription.honoredFilter, { resourceSubscriptions: [uri], resourcesListChanged: true })

  const { hash } = (await call(write, 'get_document', { block_id: id, limit: 1 })).structuredContent
  await call(write, 'patch_document', {
    block_id: id, base_hash: hash, operations: [{ op: 'replace_text', node_id: '@1', find: 'Spring', replace: 'Summer' }],
  })
  await until(() => heard.includes(uri))
  assert.match((await client.readResource({ uri })).contents[0].text, /^# Summer/)
  await call(write, 'create_block', { title: 'Another' })
  await until(() => heard.includes('list'))
  await subscription.close()
  assert.equal(await subscription.closed, 'local')
}

async function until(done) {
  for (const end = Date.now() + 10_000; !done(); await new Promise((r) => setTimeout(r, 20))) {
    assert.ok(Date.now() < end, 'it was not told in time')
  }
}
