// What the tests share: the real binary on a folder and a port of its own, and programs run to their end.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'

const here = import.meta.dirname

export const bin = process.env.CAIRN_TEST_BIN ?? path.join(here, '..', 'bin', 'cairn')

/** An npm package's program, by its path inside node_modules. */
export const npm = (...parts) => path.join(here, 'node_modules', ...parts)

// A client that hangs must not hang the run; the slowest takes about two seconds here.
const patience = 60_000

/** A folder that is gone after the test. */
export async function tempDir(t) {
  const dir = await mkdtemp(path.join(tmpdir(), 'cairn-e2e-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  return dir
}

/**
 * The environment for a program under test: nothing of the caller's configuration, and a home of its own, since clients
 * keep tokens and logs there.
 */
export function cleanEnv(home, extra = {}) {
  const env = { PATH: process.env.PATH, HOME: home, TMPDIR: tmpdir(), NO_COLOR: '1' }
  return { ...env, ...extra }
}

/** Runs a program to its end and returns {code, stdout, stderr}. */
export async function run(file, args, { env, input = '' } = {}) {
  const child = spawn(file, args, { env, timeout: patience, killSignal: 'SIGKILL' })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (d) => (stdout += d))
  child.stderr.setEncoding('utf8').on('data', (d) => (stderr += d))
  child.stdin.on('error', () => {}) // the program may end without reading
  child.stdin.end(input)
  const [code, signal] = await once(child, 'close')
  if (signal) {
    throw new Error(`${path.basename(file)} ${args.join(' ')} ended by ${signal}\n${stdout}\n${stderr}`)
  }
  return { code, stdout, stderr }
}

/** Runs a program that must succeed and returns its stdout. */
export async function ok(file, args, options) {
  const r = await run(file, args, options)
  if (r.code !== 0) {
    throw new Error(`${path.basename(file)} ${args.join(' ')}: exit ${r.code}\n${r.stdout}\n${r.stderr}`)
  }
  return r.stdout
}

/** A port that was free a moment ago. */
export async function freePort() {
  const s = createServer()
  s.listen(0, '127.0.0.1')
  await once(s, 'listening')
  const { port } = s.address()
  s.close()
  await once(s, 'close')
  return port
}

/** Starts a program that stays, and ends it after the test; `log()` is what it printed so far. */
export function start(t, file, args, env) {
  const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (d) => (printed[name] += d))
  }
  const log = () => printed.stdout + printed.stderr
  const gone = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })))
  // A test file that dies mustn't leave a server behind.
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  const stop = async () => {
    process.off('exit', kill)
    child.kill('SIGTERM')
    const timer = setTimeout(kill, 10_000)
    const end = await gone
    clearTimeout(timer)
    return end
  }
  // A server that can't end by itself is a failure too.
  t.after(async () => {
    const { code, signal } = await stop()
    if (code !== 0) throw new Error(`${path.basename(file)} ended with ${code ?? signal}; it printed:\n${log()}`)
  })
  return { stop, gone, running: () => child.exitCode === null && child.signalCode === null, printed, log }
}

/**
 * A Cairn server on fresh data. `token(...flags)` makes an API token without a rate limit: the tests call faster than
 * 60 times a minute.
 */
export async function startCairn(t, { env = {} } = {}) {
  const home = await tempDir(t)
  const data = path.join(home, 'data')
  const port = await freePort()
  const all = cleanEnv(home, env)
  const server = start(t, bin, ['serve', '--listen', `127.0.0.1:${port}`, '--data', data], all)
  const url = `http://127.0.0.1:${port}/mcp`
  await until(server, async () => (await fetch(url)).ok)
  const token = async (...flags) =>
    (await ok(bin, ['token', 'create', '--name', 'e2e', '--rate', '0', '--data', data, ...flags], { env: all })).trim()
  return { ...server, url, data, home, env: all, token }
}

/** The URL of a new database on the PostgreSQL cluster of the test run; the database is gone after the test. */
export async function freshDatabase(t) {
  const cluster = process.env.CAIRN_TEST_POSTGRES
  if (!cluster) throw new Error('CAIRN_TEST_POSTGRES is not set; run this under scripts/with-postgres')
  const name = `e2e_${randomBytes(8).toString('hex')}`
  const sql = (text) => ok('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-c', text, cluster], { env: process.env })
  await sql(`CREATE DATABASE ${name}`)
  t.after(() => sql(`DROP DATABASE ${name} WITH (FORCE)`))
  return cluster.replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${name}`)
}

/** Waits until the server answers, or tells what it printed. */
export async function until(server, ready) {
  const end = Date.now() + patience
  while (Date.now() < end && server.running()) {
    try {
      if (await ready()) return
    } catch {
      // not listening yet
    }
    await new Promise((r) => setTimeout(r, 50))
  }
  throw new Error(`the server did not come up; it printed:\n${server.log()}`)
}
