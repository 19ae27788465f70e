// The larger clients, as people use them: added by the URL alone, let in through the page that they open, then asked how
// they stand. None of them needs a model for that. `make clients` runs this; it isn't part of `make test`.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { run, startCairn } from '../cairn.mjs'
import { browserFor, spoil, startWithPerson } from '../person.mjs'

const installed = (...parts) => path.join(import.meta.dirname, 'node_modules', ...parts)
// Two come as programs for one platform each, which their packages' install scripts, that don't run here, would put in place.
const programs = {
  'claude-code': installed('@anthropic-ai', `claude-code-linux-${process.arch}`, 'claude'),
  opencode: installed(`opencode-linux-${process.arch}`, 'bin', 'opencode'),
  codex: installed('@openai', 'codex', 'bin', 'codex.js'),
  'gemini-cli': installed('@google', 'gemini-cli', 'bundle', 'gemini.js'),
}

const quote = (s) => `'${s.replaceAll("'", `'\\''`)}'`
const bare = (text) => text.replace(/\x1b\][^\x07\x1b]*(\x07|\x1b\\)/g, '').replace(/\x1b\[[0-9;?<>=]*[ -/]*[@-~]/g, '')

/** A terminal that a program runs in: it is read until something shows, and typed into. */
class Terminal {
  text = ''

  constructor(t, home, env, file, ...args) {
    const line = ['stty cols 150 rows 50;', file, ...args.map(quote)].join(' ')
    this.child = spawn('script', ['-qec', line, '/dev/null'], { cwd: home, env: { ...env, TERM: 'xterm-256color' }, detached: true })
    for (const s of [this.child.stdout, this.child.stderr]) s.setEncoding('utf8').on('data', (d) => (this.text += d))
    this.child.stdin.on('error', () => {})
    this.ended = once(this.child, 'close')
    t.after(() => {
      try { process.kill(-this.child.pid, 'SIGKILL') } catch { /* ended by itself */ }
    })
  }

  async shows(pattern, seconds = 90) {
    const end = Date.now() + seconds * 1000
    while (!pattern.test(bare(this.text))) {
      if (Date.now() > end || this.child.exitCode !== null) throw new Error(`${pattern} never showed:\n${bare(this.text).slice(-3000)}`)
      await new Promise((r) => setTimeout(r, 100))
    }
  }

  /** Types a line as a person does, who presses Return once it shows: together they'd be taken for pasted text. */
  async type(line) {
    this.text = ''
    this.child.stdin.write(line)
    await this.shows(new RegExp(line))
    await new Promise((r) => setTimeout(r, 1500))
    this.child.stdin.write('\r')
  }
}

/** Runs a client in its own folder, since some read a configuration from where they run, and returns what it prints. */
const caller = (file, home, env) => async (...args) => {
  const r = await run('sh', ['-c', `cd ${quote(home)} && exec ${quote(file)} "$@"`, 'sh', ...args], { env })
  const text = bare(r.stdout + r.stderr)
  assert.equal(r.code, 0, `${args.join(' ')}\n${text}`)
  return text
}

/**
 * A client's test: `drive` lets it in, `see` makes sure that it reaches the server. A token that no longer counts must be
 * refreshed, and the person asked exactly once.
 */
function client(name, extra, drive, see, { expired = false } = {}) {
  const file = programs[name]
  const skip = existsSync(file) ? false : `there is no ${name} for ${process.arch} among the installed packages`
  test(name, { skip, timeout: 280_000 }, async (t) => {
    if (skip) return
    const cairn = await startWithPerson(t)
    const person = await browserFor(t, {}, extra)
    const { home, env } = person
    const call = caller(file, home, env)
    const terminal = (...args) => new Terminal(t, home, env, quote(file), ...args)
    const version = (await call('--version')).match(/\d+\.\d+\.\d+/)[0]
    const began = Date.now()
    let connected
    try {
      const all = { url: cairn.url, home, env, call, terminal, file }
      await drive(all)
      await see(all)
      connected = Date.now()
      const before = await spoil(home, expired)
      await see(all)
      assert.notDeepEqual(await spoil(home), before, 'no new token was kept')
    } catch (e) {
      e.message += `\nopened: ${JSON.stringify(await person.opened(), null, 1)}\nthe server printed:\n${cairn.log()}`
      throw e
    }
    const opened = await person.opened()
    assert.deepEqual(opened.map((o) => o.error), [undefined], JSON.stringify(opened, null, 1))
    t.diagnostic(`${name} ${version}: let in as “${opened[0].client}”, ${((connected - began) / 1000).toFixed(1)} s`)
  })
}

client('claude-code', { DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' }, async ({ url, call, terminal }) => {
  await call('mcp', 'add', '--transport', 'http', 'cairn', url)
  assert.match(await call('mcp', 'list'), /cairn: .*Needs authentication/)
  const login = terminal('mcp', 'login', 'cairn')
  await login.shows(/Authenticated with "cairn"/)
  await login.ended
}, async ({ call }) => {
  assert.match(await call('mcp', 'list'), /cairn: .*Connected/)
})

client('codex', {}, async ({ url, call }) => {
  assert.match(await call('mcp', 'add', 'cairn', '--url', url), /Successfully logged in/) // signs in at once
  assert.match(await call('mcp', 'list'), /^cairn .* OAuth$/m)
}, codexSeesTools)

/** `codex mcp list` doesn't connect; what an editor asks codex for does. */
async function codexSeesTools({ home, env, file }) {
  const server = spawn(file, ['app-server'], { cwd: home, env, stdio: ['pipe', 'pipe', 'ignore'] })
  const gone = once(server, 'close')
  try {
    let text = ''
    const answered = new Promise((resolve) => server.stdout.setEncoding('utf8').on('data', (d) => {
      text += d
      const line = text.split('\n').slice(0, -1).find((l) => JSON.parse(l).id === 2)
      if (line) resolve(JSON.parse(line).result)
    }))
    const send = (m) => server.stdin.write(JSON.stringify(m) + '\n')
    send({ id: 1, method: 'initialize', params: { clientInfo: { name: 'cairn-e2e', version: '1' } } })
    send({ method: 'initialized' })
    send({ id: 2, method: 'mcpServerStatus/list', params: {} })
    const result = await Promise.race([answered, gone.then(() => { throw new Error(`codex app-server ended:\n${text}`) })])
    const [status] = result.data
    assert.equal(status.serverInfo?.name, 'Cairn')
    assert.ok(status.tools.list_tasks, Object.keys(status.tools).join(' '))
  } finally {
    server.kill()
    await gone
  }
}

client('opencode', { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }, async ({ url, home, call }) => {
  await writeFile(path.join(home, 'opencode.json'), JSON.stringify({ mcp: { cairn: { type: 'remote', url } } }))
  assert.match(await call('mcp', 'auth', 'cairn'), /Authentication successful/)
}, async ({ call }) => {
  assert.match(await call('mcp', 'list'), /cairn connected/)
})

// The key is never used: it only keeps the start from asking how to reach a model.
client('gemini-cli', { GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_API_KEY: 'none' }, async ({ url, home, call, terminal }) => {
  await mkdir(path.join(home, '.gemini'), { recursive: true })
  await writeFile(path.join(home, '.gemini', 'settings.json'), JSON.stringify({
    security: { auth: { selectedType: 'gemini-api-key' } }, general: { enableAutoUpdate: false }, privacy: { usageStatisticsEnabled: false },
  }))
  await call('mcp', 'add', '--scope', 'user', '--transport', 'http', 'cairn', url)
  const ui = terminal()
  await ui.shows(/Tips for getting started/)
  await ui.shows(/Type your message/)
  await ui.type('/mcp auth cairn')
  await ui.shows(/Do you want to continue\?/)
  await ui.type('') // yes
  await ui.shows(/Successfully authenticated and reloaded tools for 'cairn'/)
  await ui.type('/mcp list')
  await ui.shows(/cairn.*Ready \(\d+ tools?\b/)
  await ui.type('/quit')
  await ui.ended
}, async ({ call }) => {
  assert.match(await call('mcp', 'list'), /cairn: .*Connected/)
}, { expired: true }) // it doesn't refresh a token that is refused before its time

// By token, for those that take one as a header: no page opens.
test('by token', async (t) => {
  const cairn = await startCairn(t)
  const token = await cairn.token()
  const header = `Authorization: Bearer ${token}`
  const ways = {
    'claude-code': async ({ call }) => {
      await call('mcp', 'add', '--transport', 'http', 'cairn', cairn.url, '--header', header)
      assert.match(await call('mcp', 'list'), /cairn: .*Connected/)
    },
    opencode: async ({ home, call }) => {
      await writeFile(path.join(home, 'opencode.json'), JSON.stringify({
        mcp: { cairn: { type: 'remote', url: cairn.url, oauth: false, headers: { Authorization: `Bearer ${token}` } } },
      }))
      assert.match(await call('mcp', 'list'), /cairn connected/)
    },
    'gemini-cli': async ({ call }) => {
      await call('mcp', 'add', '--scope', 'user', '--transport', 'http', '--header', header, 'cairn', cairn.url)
      assert.match(await call('mcp', 'list'), /cairn: .*Connected/)
    },
    codex: async ({ home, env, file, call }) => {
      await call('mcp', 'add', 'cairn', '--url', cairn.url, '--bearer-token-env-var', 'CAIRN_TOKEN')
      assert.match(await call('mcp', 'list'), /^cairn .*CAIRN_TOKEN .*Bearer token$/m)
      await codexSeesTools({ home, env, file })
    },
  }
  for (const [name, drive] of Object.entries(ways)) {
    await t.test(name, { skip: !existsSync(programs[name]) }, async (t) => {
      const { home, env, opened } = await browserFor(t, {}, { GEMINI_CLI_TRUST_WORKSPACE: 'true', OPENCODE_DISABLE_MODELS_FETCH: '1', CAIRN_TOKEN: token })
      await drive({ home, env, file: programs[name], call: caller(programs[name], home, env) })
      assert.deepEqual(await opened(), [])
    })
  }
})
