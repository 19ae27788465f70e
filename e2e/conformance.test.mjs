// The MCP conformance suite against a test build of our own stack (conformance/) with the suite's fixtures in it.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { cleanEnv, npm, run, start, tempDir, until } from './cairn.mjs'

const here = import.meta.dirname
const suite = npm('@modelcontextprotocol', 'conformance', 'dist', 'index.js')
const server = process.env.CAIRN_TEST_CONFORMANCE ?? path.join(here, '..', 'bin', 'conformance-server')

// The suite doesn't score this one, since its own example server fails it; ours doesn't.
const beyond = ['http-header-validation']

for (const { revision, scored, more } of [
  { revision: '2026-07-28', scored: 37, more: beyond },
  { revision: '2025-11-25', scored: 30, more: [] },
]) {
  test(revision, async (t) => {
    const home = await tempDir(t)
    const env = cleanEnv(home)
    const results = path.join(home, 'results')
    const fixture = start(t, server, ['-data', path.join(home, 'data')], env)
    await until(fixture, () => fixture.printed.stdout.includes('\n'))
    const url = fixture.printed.stdout.split('\n')[0]

    const r = await run(process.execPath, [suite, 'server', '--url', url, '--requirements', revision,
      '--expected-failures', path.join(here, 'conformance', 'expected-failures', `${revision}.yaml`),
      '--output-dir', results], { env })
    const { ran, bad } = await read(results)
    const tell = `${r.stdout.slice(r.stdout.indexOf('=== SUMMARY'))}\n${r.stderr}\n${bad.map((b) => b.text).join('\n')}` +
      `\nthe server printed:\n${fixture.log()}`
    assert.equal(r.code, 0, tell)
    assert.ok(ran.size >= scored, `only ${ran.size} scenarios ran\n${tell}`)
    for (const name of more) {
      assert.ok(ran.has(name), `${name} didn't run`)
      assert.ok(!bad.some((b) => b.scenario === name), tell)
    }
  })
}

// The Skills extension has scenarios of its own, which the run of a revision leaves out.
for (const { scenario, checks } of [
  { scenario: 'sep-2640-skills-enumeration', checks: 32 },
  { scenario: 'sep-2640-skills-manifest', checks: 6 },
]) {
  test(scenario, async (t) => {
    const home = await tempDir(t)
    const env = cleanEnv(home)
    const results = path.join(home, 'results')
    const fixture = start(t, server, ['-data', path.join(home, 'data')], env)
    await until(fixture, () => fixture.printed.stdout.includes('\n'))
    const url = fixture.printed.stdout.split('\n')[0]

    const r = await run(process.execPath, [suite, 'server', '--url', url, '--scenario', scenario, '--output-dir', results], { env })
    const { bad, passed } = await read(results)
    assert.equal(r.code, 0, `${r.stdout}\n${r.stderr}`)
    assert.deepEqual(bad, [])
    assert.ok(passed >= checks, `only ${passed} checks passed\n${r.stdout}`)
  })
}

/** What the suite wrote: the scenarios that ran, how many checks passed, and every check that failed or warned. */
async function read(dir) {
  const ran = new Set()
  const bad = []
  let passed = 0
  for (const entry of await readdir(dir)) {
    // A folder a scenario, named server-SCENARIO-TIME.
    const scenario = entry.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/, '')
    ran.add(scenario)
    for (const check of JSON.parse(await readFile(path.join(dir, entry, 'checks.json'), 'utf8'))) {
      if (check.status === 'SUCCESS') passed++
      if (check.status === 'FAILURE' || check.status === 'WARNING') {
        bad.push({ scenario, text: `${scenario}: ${check.id}: ${check.status}: ${check.errorMessage}\n` +
          `  ${JSON.stringify(check.details)}` })
      }
    }
  }
  return { ran, bad, passed }
}
