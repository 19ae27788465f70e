// What a person does on the pages once agents are in: pause, end, change rights; keys for scripts; heaps and who shares them.
import assert from 'node:assert/strict'
import test from 'node:test'
import { agent, another, letIn, owner, serve } from './browser.mjs'

const said = (page, text) => page.locator('[role=status]', { hasText: text }).waitFor()

/** Loads a page again until it says something. */
async function eventually(page, text) {
  for (let i = 0; i < 40 && !text.test(await page.locator('main').innerText()); i++) {
    await page.waitForTimeout(100)
    await page.reload()
  }
  assert.match(await page.locator('main').innerText(), text)
}

for (const postgres of [false, true]) {
  test(`pause, change rights, disconnect, on ${postgres ? 'PostgreSQL' : 'SQLite'}`, async (t) => {
    const server = await serve(t, { postgres })
    const ana = await owner(server)
    const hermes = await letIn(t, ana, await agent(t, server), { heaps: ['Personal'], write: true, stay: true })
    const argus = await letIn(t, ana, await agent(t, server, { name: 'Argus' }), { heaps: ['Work'] })
    const status = async (a) => (await a.call('list_tasks')).status
    const c = await ana.context(t)
    const page = await c.newPage()
    await page.goto('/agents')

    await t.test('one', async () => {
      await page.getByRole('button', { name: 'Pause Hermes' }).click()
      await said(page, 'Paused.')
      assert.equal(await page.locator('.row', { hasText: 'Hermes' }).locator('.state').innerText(), 'Paused')
      assert.deepEqual([await status(hermes), await status(argus)], [403, 200])
      await page.getByRole('button', { name: 'Resume Hermes' }).click()
      await said(page, 'Resumed.')
      assert.equal(await status(hermes), 200, 'with the same key')
    })
    await t.test('all', async () => {
      await page.locator('main').getByRole('button', { name: 'Pause all' }).click()
      await said(page, 'All your agents are paused.')
      assert.deepEqual([await status(hermes), await status(argus)], [403, 403])
      await page.locator('.banner').getByRole('button', { name: 'Resume all' }).click()
      await said(page, 'Your agents may call again.')
      assert.deepEqual([await status(hermes), await status(argus)], [200, 200])
    })
    await t.test('the server', async () => {
      await page.goto('/admin/accounts')
      await page.getByRole('button', { name: 'Pause all agents of this server' }).click()
      await said(page, 'All agents of this server are paused.')
      assert.deepEqual([await status(hermes), await status(argus)], [403, 403])
      await page.getByRole('button', { name: 'Resume the agents of this server' }).click()
      await said(page, 'The agents of this server may call again.')
      assert.deepEqual([await status(hermes), await status(argus)], [200, 200])
    })
    await t.test('rights count on the next call', async () => {
      await page.goto('/agents')
      await page.getByRole('link', { name: 'Hermes', exact: true }).click()
      await page.getByRole('radio', { name: 'Read only' }).check()
      await page.getByRole('button', { name: 'Save' }).click()
      await said(page, 'Saved.')
      assert.equal((await hermes.call('create_personal_task', { name: 'No' })).status, 403)
      await page.getByRole('checkbox', { name: 'Personal', exact: true }).uncheck()
      await page.getByRole('button', { name: 'Save' }).click()
      const text = await page.locator('.errors').innerText()
      assert.match(text, /at least one of the heaps/)
    })
    await t.test('disconnect while it calls', async () => {
      let going = true
      const seen = []
      const stream = (async () => {
        while (going && seen.at(-1) !== 401) { // wrong keys are counted, so one is enough
          seen.push(await status(hermes))
          await new Promise((r) => setTimeout(r, 20))
        }
      })()
      await page.getByRole('link', { name: 'Disconnect' }).click()
      await page.getByRole('button', { name: /^Disconnect .*Hermes/ }).click()
      await said(page, 'Disconnected.')
      assert.equal(await status(hermes), 401)
      going = false
      await stream
      assert.equal(seen[0], 200)
      assert.deepEqual([...new Set(seen)].filter((s) => s !== 200 && s !== 401), [])
      const r = await hermes.exchange({ grant_type: 'refresh_token', refresh_token: hermes.tokens.refresh_token })
      assert.equal(r.status, 400)
      assert.equal(await page.locator('.row', { hasText: 'Hermes' }).count(), 0)
      await page.getByRole('link', { name: /Show those that are disconnected/ }).click()
      assert.equal(await page.locator('.row', { hasText: 'Hermes' }).locator('.state').innerText(), 'Disconnected')
      assert.equal(await status(argus), 200)
    })
    assert.deepEqual(c.trouble, [])
  })
}

test('a key for scripts is shown once', async (t) => {
  const server = await serve(t)
  const ana = await owner(server)
  const c = await ana.context(t)
  const page = await c.newPage()
  await page.goto('/tokens')
  await page.getByLabel('Name', { exact: true }).fill('backup <script>')
  await page.getByRole('radio', { name: 'Only these' }).check()
  await page.getByRole('button', { name: 'Create token' }).click()
  assert.match(await page.locator('.errors').innerText(), /heaps/)
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'backup <script>')
  await page.getByRole('checkbox', { name: 'Work', exact: true }).check()
  await page.getByRole('button', { name: 'Create token' }).click()
  const secret = await page.locator('#secret').innerText()
  assert.match(await page.locator('main').innerText(), /Reads all areas in Work/)
  const use = () => fetch(`${server.url}/api/list_heaps`, { method: 'POST', headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' }, body: '{}' })
  assert.equal((await use()).status, 200)

  await page.getByRole('link', { name: 'I have stored it' }).click()
  await eventually(page, /Last used today/) // the use is written a moment after the call
  const back = () => page.evaluate(() => history.go(-2)).then(() => page.waitForTimeout(500))
  for (const look of [() => page.reload(), back, () => page.goto('/tokens')]) {
    await look()
    assert.ok(!(await page.content()).includes(secret))
  }
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length]), [0, 0])

  await page.goto('/tokens')
  await page.getByRole('link', { name: 'Revoke backup <script>' }).click()
  await eventually(page, /It was used 1 time/)
  await page.getByRole('button', { name: /^Revoke/ }).click()
  await said(page, 'Revoked.')
  assert.equal((await use()).status, 401)
  assert.deepEqual(c.trouble, [])
})

test('heaps: create, invite, accept, role, archive', async (t) => {
  const server = await serve(t)
  const ana = await owner(server)
  const ben = await another(server, ana, 'Ben')
  const [hers, his] = [await ana.context(t), await ben.context(t)]
  const [a, b] = [await hers.newPage(), await his.newPage()]
  await a.goto('/heaps')
  await a.getByLabel('Name').fill('Club')
  await a.getByRole('button', { name: 'Create heap' }).click()
  await said(a, 'Heap created.')
  await a.getByRole('link', { name: 'Club' }).click()
  for (const name of ['Nobody Here', 'ben']) {
    await a.getByLabel('Name of their account here').fill(name)
    await a.getByRole('button', { name: 'Invite', exact: true }).click()
    await said(a, 'If there is an account of that name, it is invited now.')
  }
  await b.goto('/agents')
  assert.match(await b.locator('nav.side').innerText(), /Heaps\s*1/)
  await b.goto('/heaps')
  await b.getByRole('button', { name: 'Accept the invitation to Club' }).click()
  await said(b, 'You are a member now.')
  await b.getByRole('link', { name: 'Club' }).click()
  assert.match(await b.locator('main').innerText(), /You are its viewer; Ana owns it/)
  assert.equal(await b.getByRole('button', { name: 'Invite', exact: true }).count(), 0)

  await a.reload()
  await a.getByLabel('Role of Ben').selectOption('editor')
  await a.getByRole('button', { name: 'Set the role of Ben' }).click()
  await said(a, 'Role changed.')
  await b.reload()
  assert.match(await b.locator('main').innerText(), /You are its editor/)

  await a.getByRole('button', { name: 'Archive this heap' }).click()
  await said(a, 'Archived.')
  await b.goto('/heaps')
  assert.equal(await b.locator('.rows').first().getByText('Club').count(), 0)
  await a.getByRole('button', { name: 'Bring it back' }).click()
  await said(a, 'Brought back.')
  await a.getByRole('link', { name: 'Remove Ben' }).click()
  await a.getByRole('button', { name: /Remove/ }).click()
  await said(a, 'Removed from the heap.')
  await b.goto('/heaps')
  assert.equal(await b.getByText('Club').count(), 0)
  assert.deepEqual([...hers.trouble, ...his.trouble], [])
})
