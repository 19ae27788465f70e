// MCP Inspector's CLI, in both protocol eras.
import assert from 'node:assert/strict'
import test from 'node:test'
import { bin, cleanEnv, npm, ok, startCairn, tempDir } from './cairn.mjs'
import { checkTools } from './story.mjs'

const inspector = npm('@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js')

/** Calls the Inspector on a target (a URL with flags, or a command) and returns the result that it prints. */
async function inspect(env, era, target, ...args) {
  const out = await ok(process.execPath,
    [inspector, '--cli', '--protocol-era', era, '--format', 'json', ...args, ...target], { env })
  return JSON.parse(out).result
}

for (const era of ['legacy', 'modern']) {
  test(`HTTP, ${era}`, async (t) => {
    const cairn = await startCairn(t)
    const token = await cairn.token()
    const target = [cairn.url, '--transport', 'http', '--header', `Authorization: Bearer ${token}`]
    await story(cairn.env, era, target)
  })

  test(`stdio, ${era}`, async (t) => {
    const home = await tempDir(t)
    await story(cleanEnv(home), era, [bin, 'mcp', '--stdio', '--data', `${home}/data`])
  })

  test(`stdio in front of a server, ${era}`, async (t) => {
    const cairn = await startCairn(t)
    const token = await cairn.token()
    // Through the environment, since the Inspector has a flag --server of its own.
    const environment = ['-e', `CAIRN_SERVER=${new URL(cairn.url).origin}`, '-e', `CAIRN_TOKEN=${token}`]
    await story(cairn.env, era, [bin, 'mcp', '--stdio', ...environment])
  })
}

async function story(env, era, target) {
  // --strict fails on schemas that some hosts can't pass on to their model.
  checkTools((await inspect(env, era, target, '--method', 'tools/list', '--strict')).tools)

  const call = (name, args) =>
    inspect(env, era, target, '--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))
  const made = await call('create_personal_task', { name: 'Oil the hinges' })
  const { id } = made.structuredContent
  assert.match(made.content[0].text, /^✅ Successfully created personal task: "Oil the hinges"/)
  const tasks = (await call('list_tasks', { completed: false })).structuredContent.tasks
  assert.deepEqual(tasks.map((task) => [task.id, task.text]), [[id, 'Oil the hinges']])

  const { prompts } = await inspect(env, era, target, '--method', 'prompts/list')
  assert.deepEqual(prompts.map((p) => p.name), ['plan_day', 'start_session', 'wrap_up_session'])
  const { messages } = await inspect(env, era, target, '--prompt-args', 'day=today', '--method', 'prompts/get', '--prompt-name', 'plan_day')
  assert.match(messages[0].content.text, /list_tasks/)

  const note = (await call('create_block', { title: 'Hinges', content: '# Which\n\nAll of them.' })).structuredContent
  const uri = `cairn://block/${note.id}`
  const { resources } = await inspect(env, era, target, '--method', 'resources/list')
  assert.equal(resources.find((r) => r.uri === uri)?.title, 'Hinges')
  const { resourceTemplates } = await inspect(env, era, target, '--method', 'resources/templates/list')
  assert.deepEqual(resourceTemplates.map((r) => r.uriTemplate), ['cairn://block/{id}'])
  const { contents } = await inspect(env, era, target, '--method', 'resources/read', '--uri', uri)
  assert.equal(contents[0].text, '# Which\n\nAll of them.\n')
}
