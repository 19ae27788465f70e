// What people call by name in a client, prompts and resources, reaches the model that the client asks. The model is a server on
// this machine that keeps what it is asked and answers one word, so that no real one takes part.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import test from 'node:test'
import { cleanEnv, ok, run, startCairn } from '../cairn.mjs'

const installed = (...parts) => path.join(import.meta.dirname, 'node_modules', ...parts)
const claude = installed('@anthropic-ai', `claude-code-linux-${process.arch}`, 'claude')
const gemini = installed('@google', 'gemini-cli', 'bundle', 'gemini.js')

/** A model that says "Heard." to everything, by Anthropic's interface and Google's. asked: the bodies of what it was asked. */
async function startModel(t) {
  const asked = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request.setEncoding('utf8')) body += part
    asked.push(body)
    if (/generateContent/i.test(request.url)) {
      const answer = {
        candidates: [{ content: { role: 'model', parts: [{ text: 'Heard.' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      }
      const stream = request.url.includes('stream')
      response.setHeader('Content-Type', stream ? 'text/event-stream' : 'application/json')
      response.end(stream ? `data: ${JSON.stringify(answer)}\n\n` : JSON.stringify(answer))
      return
    }
    if (!request.url.includes('/messages')) {
      response.writeHead(404, { 'Content-Type': 'application/json' }).end('{}')
      return
    }
    const message = {
      id: 'msg_1', type: 'message', role: 'assistant', model: 'model', content: [], stop_reason: null, stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    if (!JSON.parse(body).stream) {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ ...message, content: [{ type: 'text', text: 'Heard.' }], stop_reason: 'end_turn' }))
      return
    }
    response.setHeader('Content-Type', 'text/event-stream')
    for (const event of [
      { type: 'message_start', message },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Heard.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { asked, url: `http://127.0.0.1:${server.address().port}` }
}

/** A Cairn with one note in it, and how to run a client in a folder of its own. */
async function prepare(t, extra) {
  const cairn = await startCairn(t)
  const token = await cairn.token()
  const made = await ok(cairnBin(), ['--data', cairn.data, '--json', 'call', 'create_block',
    '{"title":"Launch plan","content":"# Launch\\n\\nMarmalade on Monday."}'], { env: cairn.env })
  const home = path.join(cairn.home, 'client')
  await mkdir(home)
  const model = await startModel(t)
  const env = cleanEnv(home, extra(model.url))
  env.PATH = `${path.dirname(process.execPath)}:${env.PATH}`
  const inHome = async (file, ...args) => run('sh', ['-c', 'cd "$0" && exec "$@"', home, file, ...args], { env })
  return { cairn, token, uri: `cairn://block/${JSON.parse(made).id}`, home, model, inHome }
}

const cairnBin = () => process.env.CAIRN_TEST_BIN ?? path.join(import.meta.dirname, '..', '..', 'bin', 'cairn')

test('claude-code: prompts are commands', async (t) => {
  const { cairn, token, model, inHome } = await prepare(t, (url) => ({
    ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'none', DISABLE_TELEMETRY: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1',
  }))
  await inHome(claude, 'mcp', 'add', '--transport', 'http', 'cairn', cairn.url, '--header', `Authorization: Bearer ${token}`)
  for (const [line, said] of [
    ['/mcp__cairn__plan_day today', 'Chosen for the day'],
    ['/mcp__cairn__start_session marmalade', 'Marmalade on Monday'],
    ['/mcp__cairn__wrap_up_session', 'capture_context'],
  ]) {
    model.asked.length = 0
    const r = await inHome(claude, '-p', line)
    assert.ok(model.asked.some((body) => body.includes(said)), `${line}: ${r.stdout} ${r.stderr}`)
  }
})

test('gemini-cli: prompts are commands, and a resource is mentioned by @', async (t) => {
  const { cairn, token, uri, home, model, inHome } = await prepare(t, (url) => ({
    GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_TELEMETRY_ENABLED: 'false',
  }))
  await mkdir(path.join(home, '.gemini'))
  await writeFile(path.join(home, '.gemini', 'settings.json'), JSON.stringify({
    mcpServers: { cairn: { httpUrl: cairn.url, headers: { Authorization: `Bearer ${token}` } } },
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    general: { disableAutoUpdate: true, disableUpdateNag: true },
  }))
  for (const [line, said] of [
    ['/plan_day --day="today"', 'Chosen for the day'],
    ['/start_session --topic="marmalade"', 'Marmalade on Monday'],
    [`What is in @cairn:${uri} then`, 'Marmalade on Monday'],
  ]) {
    model.asked.length = 0
    // With a model named, it doesn't ask one first which to take.
    const r = await inHome(process.execPath, gemini, '-m', 'gemini-2.5-flash', '-p', line)
    assert.ok(model.asked.some((body) => body.includes(said)), `${line}: ${r.stdout} ${r.stderr}`)
  }
})
