// What the browser's tests share: Chromium, a server with people on it, an agent that asks to be let in, and a mail server.
import assert from 'node:assert/strict'
import { createHash, createPrivateKey, createPublicKey, pbkdf2Sync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after } from 'node:test'
import { chromium } from 'playwright-core'
import { SMTPServer } from 'smtp-server'
import { bin, cleanEnv, freePort, freshDatabase, ok, start, tempDir, until } from './cairn.mjs'

const launchArgs = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP cairn.test 127.0.0.1']

// Nothing here needs longer on a machine that does something else too.
const patience = 15_000

let launched
/** The one browser of a test file. */
export const browser = () => (launched ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: launchArgs }))
after(async () => (await launched)?.close())

/**
 * A browser context of its own that keeps what went wrong in `trouble`: errors of scripts and of the policy, and requests to
 * any host but those of `hosts`.
 */
export async function context(t, server, options = {}) {
  const { cookies, hosts = [], ...rest } = options
  const c = await (await browser()).newContext({ baseURL: server.url, locale: 'en-GB', timezoneId: 'Europe/Lisbon', reducedMotion: 'reduce', ...rest })
  t.after(() => c.close())
  c.setDefaultTimeout(patience)
  if (cookies) await c.addCookies(cookies)
  const trouble = []
  const known = [new URL(server.url).host, ...hosts]
  c.on('console', (m) => {
    // A refused form and a server that is stopped show in the console too; the tests ask for those.
    if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) trouble.push(m.text())
  })
  c.on('weberror', (e) => trouble.push(String(e.error())))
  c.on('request', (r) => {
    const u = new URL(r.url())
    if (/^https?:$/.test(u.protocol) && !known.includes(u.host)) trouble.push(`request to ${r.url()}`)
  })
  return Object.assign(c, { trouble, expect: (host) => known.push(host) })
}

/** A server that has just been started on fresh data; `setup` is the link it printed. */
export async function serve(t, { name = '127.0.0.1', postgres = false, env = {}, mail } = {}) {
  const home = await tempDir(t)
  const port = await freePort()
  const url = `http://${name}:${port}`
  const all = cleanEnv(home, { MCP_MAX_RATE_LIMIT: '0', PUBLIC_URL: url, CAIRN_DATA: path.join(home, 'data'), ...env })
  if (postgres) all.CAIRN_DATABASE_URL = await freshDatabase(t)
  if (mail) Object.assign(all, { CAIRN_SMTP_URL: mail.url, CAIRN_MAIL_FROM: 'cairn@example.org' })
  const server = { url, home, env: all, host: `${name}:${port}`, mail }
  server.begin = async () => {
    server.process = start(t, bin, ['serve', '--json', '--listen', `127.0.0.1:${port}`], all)
    await until(server.process, async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok && server.process.printed.stdout.trim())
    return JSON.parse(server.process.printed.stdout)
  }
  server.stop = () => server.process.stop()
  server.setup = (await server.begin()).setup_url
  server.cli = (...args) => ok(bin, args, { env: all })
  return server
}

let list
async function words(server) {
  if (list) return list
  const page = await (await fetch(`${server.url}/sign-up`)).text()
  list = (await (await fetch(server.url + /data-new-words="([^"]+)"/.exec(page)[1])).text()).trim().split('\n')
  return list
}

/** Signs a message with the key that twelve words stand for, independently of the page's script. */
function prove(phrase, message) {
  const seed = pbkdf2Sync(phrase.normalize('NFKD'), 'mnemoniccairn', 2048, 64, 'sha512').subarray(0, 32)
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]), format: 'der', type: 'pkcs8' })
  const open = createPublicKey(key).export({ format: 'jwk' }).x
  return { public: Buffer.from(open, 'base64url').toString('hex'), signature: sign(null, Buffer.from(message), key).toString('hex') }
}

async function newWords(server) {
  const all = await words(server)
  const entropy = randomBytes(16)
  const sum = createHash('sha256').update(entropy).digest()[0] >> 4
  const bits = [...entropy].map((b) => b.toString(2).padStart(8, '0')).join('') + sum.toString(2).padStart(4, '0')
  return bits.match(/.{11}/g).map((b) => all[parseInt(b, 2)]).join(' ')
}

/** Somebody with an account, signed in without a browser: what isn't under test goes this short way. */
export class Person {
  constructor(server, name) {
    Object.assign(this, { server, name })
  }

  async ask(what, body) {
    const headers = { 'Content-Type': 'application/json', Origin: this.server.url, ...(this.cookie && { Cookie: this.cookie }) }
    const r = await fetch(`${this.server.url}/api/${what}`, { method: 'POST', headers, body: JSON.stringify(body ?? {}) })
    const set = r.headers.getSetCookie().find((c) => !/theme|browser/.test(c))
    if (set) this.cookie = set.split(';')[0]
    const out = await r.json()
    if (!r.ok) throw new Error(`${what}: ${r.status} ${JSON.stringify(out)}`)
    return out
  }

  async join(way, more) {
    this.words = await newWords(this.server)
    const c = await this.ask('account/challenge', { purpose: way })
    await this.ask(`account/${way}`, { name: this.name, zone: 'Europe/Lisbon', email: '', ...more, challenge: c.id, phrase: prove(this.words, c.message) })
    return this
  }

  /** Sends a page's form, and gives the page that comes. */
  async form(to, fields) {
    const r = await fetch(this.server.url + to, { method: 'POST', headers: { Origin: this.server.url, Cookie: this.cookie, Accept: 'text/html' }, body: new URLSearchParams(fields) })
    const text = await r.text()
    if (!r.ok) throw new Error(`${to}: ${r.status} ${text}`)
    return text
  }

  /** A browser in which this person is signed in. */
  async context(t, options) {
    const [name, value] = this.cookie.split('=')
    return context(t, this.server, { cookies: [{ name, value, url: this.server.url }], ...options })
  }

  async heaps() {
    return Object.fromEntries((await this.ask('get_account')).heaps.map((h) => [h.name, h.id]))
  }

  async confirmEmail(address) {
    const page = await this.form('/settings/email'.replace('/email', ''), { act: 'email', email: address })
    const challenge = /name="challenge" value="([^"]+)"/.exec(page)[1]
    await this.form('/settings/email', { act: 'confirm', challenge, email: address, code: await this.server.mail.code(address) })
  }
}

/** The owner of a fresh server, set up by its link. */
export const owner = (server, name = 'Ana') => new Person(server, name).join('set-up', { secret: new URL(server.setup).hash.slice(1) })

/** A further person, admitted by `admin`. */
export async function another(server, admin, name) {
  const p = await new Person(server, name).join('sign-up')
  const { accounts } = await admin.ask('list_accounts')
  await admin.ask('admit_account', { account: accounts.find((a) => a.name === name).id })
  return p
}

/** An agent that asks to be let in as programs do: registration, PKCE, an answer on loopback, tokens, MCP. */
export async function agent(t, server, { name = 'Hermes', scope = 'cairn.read cairn.write offline_access' } = {}) {
  const answers = []
  let tell
  const http = createServer((req, res) => {
    const u = new URL(req.url, 'http://127.0.0.1')
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><html lang="en"><title>Agent</title><link rel="icon" href="data:,"><p>Back at the agent.')
    if (u.pathname === '/callback') {
      answers.push(Object.fromEntries(u.searchParams))
      tell?.()
    }
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.after(() => http.closeAllConnections() ?? http.close())
  const host = `127.0.0.1:${http.address().port}`
  const a = { name, answers, host, redirect: `http://${host}/callback` }
  const meta = await (await fetch(`${server.url}/.well-known/oauth-authorization-server`)).json()
  assert.equal(meta.issuer, server.url)
  const registered = await fetch(meta.registration_endpoint, { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: name, redirect_uris: [a.redirect], grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' }) })
  assert.equal(registered.status, 201, await registered.clone().text())
  a.id = (await registered.json()).client_id

  /** The address that the agent opens in a browser. */
  a.address = (asked = scope) => {
    a.verifier = randomBytes(32).toString('base64url')
    a.state = randomBytes(8).toString('hex')
    const challenge = createHash('sha256').update(a.verifier).digest('base64url')
    return `${meta.authorization_endpoint}?` + new URLSearchParams({ response_type: 'code', client_id: a.id, redirect_uri: a.redirect, scope: asked, state: a.state,
      code_challenge: challenge, code_challenge_method: 'S256', resource: `${server.url}/mcp` })
  }

  /** What the browser brought back; `nth` counts the answers so far. */
  a.answer = async (nth = 1) => {
    const end = Date.now() + patience
    while (answers.length < nth && Date.now() < end) {
      await Promise.race([new Promise((r) => (tell = r)), new Promise((r) => setTimeout(r, 200))])
    }
    assert.ok(answers.length >= nth, 'no answer came back to the agent')
    const got = answers[nth - 1]
    assert.equal(got.iss, server.url)
    assert.equal(got.state, a.state)
    return got
  }

  a.exchange = (fields) => fetch(meta.token_endpoint, { method: 'POST', body: new URLSearchParams({ client_id: a.id, resource: `${server.url}/mcp`, ...fields }) })
  a.redeem = async (code) => {
    const r = await a.exchange({ grant_type: 'authorization_code', code, redirect_uri: a.redirect, code_verifier: a.verifier })
    const out = await r.json()
    assert.equal(r.status, 200, JSON.stringify(out))
    return Object.assign(a, { tokens: out })
  }

  /** One MCP request; gives the HTTP answer with its JSON. */
  a.rpc = async (method, params = {}, token = a.tokens?.access_token) => {
    const r = await fetch(`${server.url}/mcp`, { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) })
    return { status: r.status, headers: r.headers, body: await r.json() }
  }
  a.call = (tool, args = {}, token) => a.rpc('tools/call', { name: tool, arguments: args }, token)
  a.tools = async () => (await a.rpc('tools/list')).body.result.tools.map((tool) => tool.name)
  return a
}

/** Signs in on an open consent page by the twelve words. */
export async function signInHere(page, person) {
  await page.getByLabel('Twelve words').fill(person.words)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText(/Signed in for this request as/).waitFor()
}

/** Lets an agent in as the page does, without a browser, and has it fetch its key. */
export async function letIn(t, person, a, { heaps = ['Personal'], write = false, stay = false, scope } = {}) {
  const { server } = person
  const asked = await fetch(a.address(scope))
  const Cookie = asked.headers.getSetCookie()[0].split(';')[0]
  const [, request] = /name="request" value="([^"]+)"/.exec(await asked.text())
  const headers = { Origin: server.url, Cookie, Accept: 'text/html' }
  const c = await (await fetch(`${server.url}/api/account/consent`, { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify({ request }) })).json()
  const send = (fields) => fetch(`${server.url}/oauth/authorize`, { method: 'POST', headers, body: new URLSearchParams([['request', request], ...fields]), redirect: 'manual' })
  const page = await (await send([['act', 'prove'], ['proof', JSON.stringify({ challenge: c.id, phrase: prove(person.words, c.message) })]])).text()
  const [, ticket] = /name="ticket" value="([^"]+)"/.exec(page)
  const label = (name) => new RegExp(`name="heaps" type="checkbox" value="([^"]+)"[^>]*><label[^>]*><span dir="auto">${name}<`).exec(page)[1]
  const answer = await send([['act', 'connect'], ['ticket', ticket], ['write', write ? 'yes' : 'no'], ['stay', stay ? 'yes' : 'no'], ['propose_memory', 'yes'], ['agent', ''], ['name', a.name],
    ...heaps.map((h) => ['heaps', label(h)]), ...['tasks', 'memory', 'library', 'documents', 'personas'].map((area) => ['areas', area])])
  assert.equal(answer.status, 303, await answer.clone().text())
  const to = new URL(answer.headers.get('location'))
  assert.equal(to.origin + to.pathname, a.redirect)
  return a.redeem(to.searchParams.get('code'))
}

/** A mail server that takes everything; `code(address)` waits for a mail to that address and gives the code in it. */
export async function mailServer(t) {
  const mails = []
  const smtp = new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'], logger: false,
    onData(stream, session, done) {
      let text = ''
      stream.setEncoding('utf8').on('data', (d) => (text += d)).on('end', () => {
        mails.push({ to: session.envelope.rcptTo.map((r) => r.address), text })
        done()
      })
    } })
  smtp.on('error', () => {})
  smtp.listen(0, '127.0.0.1')
  await once(smtp.server, 'listening')
  t.after(() => new Promise((r) => smtp.close(r)))
  return { mails, url: `smtp://127.0.0.1:${smtp.server.address().port}`, code: async (address) => {
    const end = Date.now() + patience
    for (;;) {
      const at = mails.findIndex((m) => m.to.includes(address) && /\b\d{4}[ -]?\d{4}\b|\b\d{6,10}\b/.test(body(m.text)))
      if (at >= 0) return /\b(\d{4}[ -]?\d{4}|\d{6,10})\b/.exec(body(mails.splice(at, 1)[0].text))[1]
      if (Date.now() > end) throw new Error(`no code came to ${address}; mails: ${JSON.stringify(mails)}`)
      await new Promise((r) => setTimeout(r, 50))
    }
  } }
}

function body(text) {
  const [head, ...rest] = text.split(/\r?\n\r?\n/)
  const plain = rest.join('\n\n')
  if (/base64/i.test(head)) return Buffer.from(plain, 'base64').toString()
  return plain.replace(/=\r?\n/g, '')
}

export const axeSource = createRequire(import.meta.url)('axe-core').source
