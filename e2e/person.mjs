// The person whom clients send to the consent page, without a browser: a cookie jar, the twelve words, and answers set
// beforehand. As a program, `person.mjs FILE URL` opens a page as xdg-open would; browserFor makes what calls it so.
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, pbkdf2Sync, sign } from 'node:crypto'
import { appendFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { bin, cleanEnv, freePort, start, tempDir, until } from './cairn.mjs'

const words = 'legal winner thank year wave sausage worth useful legal winner thank yellow'

/** Signs a challenge's message with the key of the twelve words, as assets/signin.js does. */
function signed(message) {
  const seed = pbkdf2Sync(words, 'mnemonic' + 'cairn', 2048, 64, 'sha512').subarray(0, 32)
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return {
    public: Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x, 'base64url').toString('hex'),
    signature: sign(null, Buffer.from(message), key).toString('hex'),
  }
}

/** A browser on one server's pages: it keeps cookies and says where its requests come from. */
class Browser {
  #jar = new Map()

  constructor(origin) {
    this.origin = origin
  }

  async #fetch(url, init = {}) {
    const cookie = [...this.#jar].map(([k, v]) => `${k}=${v}`).join('; ')
    const response = await fetch(new URL(url, this.origin), {
      redirect: 'manual', ...init, headers: { ...init.headers, ...(cookie && { Cookie: cookie }) },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/)
      this.#jar.set(name, value)
    }
    return response
  }

  async page(url) {
    return page(await this.#fetch(url, { headers: { 'Sec-Fetch-Site': 'cross-site' } }))
  }

  /** What a page's script asks the server for. */
  async ask(name, body) {
    const response = await this.#fetch(`/api/account/${name}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', Origin: this.origin }, body: JSON.stringify(body),
    })
    const text = await response.text()
    assert.ok(response.ok, `${name}: ${response.status} ${text}`)
    return JSON.parse(text)
  }

  async submit(action, fields) {
    return page(await this.#fetch(action, {
      method: 'POST', headers: { Origin: this.origin }, body: new URLSearchParams(fields),
    }))
  }
}

async function page(response) {
  return {
    status: response.status, html: await response.text(), location: response.headers.get('location'),
    policy: response.headers.get('content-security-policy') ?? '',
  }
}

const plain = (text) => text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim()
const unescape = (s) => s.replace(/&#(\d+);/g, (_, n) => String.fromCodePoint(n)).replace(/&quot;/g, '"')
  .replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')

/** The form fields of a page with a name: [{value, checked}]. */
function inputs(html, name) {
  return [...html.matchAll(/<input\b[^>]*>/g)].map(([tag]) => tag)
    .filter((tag) => new RegExp(`\\bname="${name}"`).test(tag))
    .map((tag) => ({ value: unescape(tag.match(/\bvalue="([^"]*)"/)?.[1] ?? ''), checked: /\schecked\b/.test(tag) }))
}

const one = (html, name) => inputs(html, name)[0]?.value

/** Gives the account of a set-up link the twelve words. */
export async function setUp(link) {
  const { origin, hash } = new URL(link)
  const browser = new Browser(origin)
  const secret = hash.slice(1)
  const { name } = await browser.ask('link', { secret })
  const c = await browser.ask('challenge', { purpose: 'set-up' })
  await browser.ask('set-up', { secret, name, zone: 'UTC', email: '', challenge: c.id, phrase: signed(c.message) })
}

/**
 * Signs in on the consent page that a client opened and answers it: {write, stay} say what is granted, {connect: false}
 * turns the client down. Returns where the browser is sent then, and what the page said of the client.
 */
export async function consent(address, { connect = true, write = true, stay = true } = {}) {
  const browser = new Browser(new URL(address).origin)
  const asked = await browser.page(address)
  const request = asked.html.match(/data-request="([^"]+)"/)?.[1]
  assert.ok(asked.status === 200 && request, `no consent page at ${address}: ${asked.status} ${asked.location ?? ''} ${plain(asked.html)}`)
  const c = await browser.ask('consent', { request })
  const proof = JSON.stringify({ challenge: c.id, phrase: signed(c.message) })
  const choices = await browser.submit('/oauth/authorize', [['request', request], ['act', 'prove'], ['proof', proof]])
  const { html } = choices
  const ticket = one(html, 'ticket')
  assert.ok(choices.status === 200 && ticket, `sign-in failed: ${choices.status} ${plain(html)}`)

  const offered = (name, value) => inputs(html, name).some((i) => i.value === value)
  const fields = [['request', request], ['ticket', ticket], ['act', connect ? 'connect' : 'reject'], ['name', one(html, 'name')]]
  for (const name of ['heaps', 'areas']) for (const { value } of inputs(html, name)) fields.push([name, value])
  fields.push(['write', write && offered('write', 'yes') ? 'yes' : 'no'])
  if (stay && offered('stay', 'yes')) fields.push(['stay', 'yes'])
  const agent = inputs(html, 'agent').find((i) => i.checked)?.value
  if (agent) fields.push(['agent', agent])
  const done = await browser.submit('/oauth/authorize', fields)
  assert.ok(done.status === 303 && done.location, `not answered: ${done.status} ${plain(done.html)}`)
  // What a real browser checks of the page that sends the form: may it lead there?
  const to = new URL(done.location)
  const policy = choices.policy.match(/form-action ([^;]*)/)?.[1].split(' ') ?? []
  assert.ok(policy.includes(to.origin) || policy.includes(to.protocol), `form-action ${policy} forbids ${to.origin}`)
  return { location: done.location, client: one(html, 'name'), again: !!agent, html }
}

/** Answers a client's page and goes on to the client, as a browser does. Returns what consent returns, and the last page. */
export async function visit(address, answers) {
  const done = await consent(address, answers)
  const response = await fetch(done.location)
  return { ...done, status: response.status, text: await response.text() }
}

/** A Cairn server whose owner has set the account up. Its URL is all that a client is told. */
export async function startWithPerson(t, { env = {}, flags = [] } = {}) {
  const home = await tempDir(t)
  const all = cleanEnv(home, env)
  const args = ['serve', '--json', '--listen', `127.0.0.1:${await freePort()}`, '--data', path.join(home, 'data'), ...flags]
  const server = start(t, bin, args, all)
  await until(server, () => server.printed.stdout.includes('\n'))
  const { mcp_url: url, setup_url: link } = JSON.parse(server.printed.stdout.split('\n')[0])
  await setUp(link)
  return { ...server, url, home, env: all }
}

/**
 * A home for a client, with a browser that the person sits at: programs by the names that clients look for, in front of
 * PATH. Returns {home, env, opened}; opened(times) lists what was opened and how it ended, and waits until it's so often.
 */
export async function browserFor(t, answers = {}, extra = {}) {
  const home = await tempDir(t)
  const dir = path.join(home, 'browser')
  const settings = path.join(home, 'person.json')
  const log = path.join(home, 'opened.jsonl')
  await mkdir(dir)
  await writeFile(log, '')
  await writeFile(settings, JSON.stringify({ log, answers }))
  // In the background, as xdg-open leaves the browser: some clients wait for it before they listen.
  const script = path.join(dir, 'browser')
  await writeFile(script, `#!/bin/sh\n'${process.execPath}' '${import.meta.filename}' '${settings}' "$@" </dev/null >/dev/null 2>&1 &\n`, { mode: 0o755 })
  for (const name of ['xdg-open', 'x-www-browser', 'www-browser', 'sensible-browser', 'open']) await symlink(script, path.join(dir, name))
  const env = cleanEnv(home, { ...extra, BROWSER: script })
  env.PATH = `${dir}:${path.dirname(process.execPath)}:${env.PATH}`
  const read = async () => (await readFile(log, 'utf8')).split('\n').filter(Boolean).map((line) => JSON.parse(line))
  // The browser notes how it ended when it has read the last page; the client has its code before.
  const opened = async (times = 0) => {
    const until = Date.now() + 10_000
    for (;;) {
      const list = await read()
      if (list.length >= times || Date.now() > until) return list
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  return { home, env, opened, answer: (a) => writeFile(settings, JSON.stringify({ log, answers: a })) }
}

/**
 * Makes the access tokens that a client keeps in files under its home useless, and returns what it kept. With `expired` the
 * client can tell by its own notes.
 */
export async function spoil(home, expired = false) {
  const found = []
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.json')) continue
    const file = path.join(entry.parentPath, entry.name)
    const text = await readFile(file, 'utf8')
    let spoiled = text.replace(/(access_?token\\*"\s*:\s*\\*")([^"\\]+)/gi, (_, key, token) => {
      found.push(token)
      return key + token.slice(0, -8) + 'AAAAAAAA'
    })
    if (expired) spoiled = spoiled.replace(/("expires_?at"\s*:\s*)\d+/gi, (_, key) => key + '1000')
    if (spoiled !== text) await writeFile(file, spoiled)
  }
  assert.ok(found.length, 'no access token was kept in a file')
  return found
}

if (process.argv[1] === import.meta.filename) {
  const { log, answers } = JSON.parse(await readFile(process.argv[2], 'utf8'))
  const url = process.argv.slice(3).find((a) => /^https?:/.test(a))
  let line = { url, args: process.argv.slice(3) }
  try {
    const { html, ...seen } = await visit(url, answers)
    line = { ...line, ...seen }
  } catch (e) {
    line.error = String(e?.stack ?? e)
  }
  await appendFile(log, JSON.stringify(line) + '\n')
}
