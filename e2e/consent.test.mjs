// Letting agents in, as a person and a program see it: the consent page, pairing, requests sent by name, asking again.
import assert from 'node:assert/strict'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { agent, another, context, letIn, mailServer, owner, serve, signInHere } from './browser.mjs'

const connect = (page) => page.locator('[data-connect]')
const box = (page, name) => page.getByRole('checkbox', { name, exact: true })

/** Opens an agent's request in a browser of its own, signed in on the page. */
async function asked(t, person, a, scope) {
  const c = await context(t, person.server, { hosts: [a.host] })
  const page = await c.newPage()
  const address = a.address(scope)
  const response = await page.goto(address)
  await signInHere(page, person)
  return { c, page, address, response }
}

/** The agents of an account, as its pages list them. */
const agents = async (person) => (await person.ask('list_agents', {})).agents

async function shared(t) {
  const server = await serve(t)
  const ana = await owner(server)
  return { server, ana }
}

test('the page begins with the least, and says who asks', async (t) => {
  const { server, ana } = await shared(t)
  const ben = await another(server, ana, 'Ben')
  await ben.ask('create_heap', { name: 'Team', kind: 'other' })
  await ben.ask('invite_member', { heap: 'Team', account: 'Ana', role: 'viewer' })
  const [invite] = (await ana.ask('get_account')).invites
  await ana.ask('respond_invite', { invite_id: invite.id, accept: true })

  const a = await agent(t, server, { name: 'Cairn Admin <b>\u202eevil' })
  const { c, page, response } = await asked(t, ana, a)

  await t.test('what is shown', async () => {
    const h1 = await page.getByRole('heading', { level: 1 }).textContent()
    assert.match(h1, /^Let “Cairn Admin <b>/)
    assert.doesNotMatch(await page.content(), /\u202e/)
    assert.equal(await page.locator('h1 b, dd b').count(), 0)
    const facts = await page.locator('dl.facts').innerText()
    assert.match(facts, /Nobody\. It registered itself/)
    assert.ok(facts.includes(`${a.host}, a program on this device`), facts)
    assert.match(await page.locator('.notice.warn').first().innerText(), /Go on only if you started this yourself, on this device, just now/)
    assert.match(await page.locator('main').innerText(), new RegExp(`This is ${server.url}`))
  })
  await t.test('headers', async () => {
    const h = await response.allHeaders()
    assert.match(h['content-security-policy'], /frame-ancestors 'none'/)
    assert.ok(h['content-security-policy'].includes(`form-action 'self' http://${a.host};`), h['content-security-policy'])
    assert.equal(h['x-frame-options'], 'DENY')
    assert.equal(h['cache-control'], 'no-store')
  })
  await t.test('the least set', async () => {
    for (const heap of ['Personal', 'Work']) assert.equal(await box(page, heap).isChecked(), false, heap)
    assert.equal(await box(page, 'Team').count(), 0, 'a heap that Ana only views')
    assert.equal(await page.getByRole('radio', { name: 'Read only' }).isChecked(), true)
    assert.equal(await page.getByRole('radio', { name: /Only this session/ }).isChecked(), true)
    await page.mouse.move(5, 5)
    await page.waitForTimeout(900)
    assert.equal(await connect(page).isDisabled(), true)
    const why = page.locator(`#${await connect(page).getAttribute('aria-describedby')}`)
    assert.equal(await why.innerText(), 'Choose at least one heap.')
    assert.equal(await why.isVisible(), true)
  })
  await t.test('the sentence and the label follow the choice', async () => {
    await box(page, 'Work').check()
    assert.equal(await connect(page).innerText(), 'Connect, read only')
    assert.match(await page.locator('[data-effect]').innerText(), /will be able to read .* in Work\. It can't change anything\. Access ends in about 1 hour\./)
    await page.getByRole('radio', { name: 'Read and write' }).check()
    assert.equal(await connect(page).innerText(), 'Connect with write access')
  })
  await t.test('Enter in the name field sends nothing', async () => {
    const sent = []
    page.on('request', (r) => r.method() === 'POST' && sent.push(r.url()))
    await page.getByLabel('Name in your lists').press('Enter')
    await page.waitForTimeout(300)
    assert.deepEqual(sent, [])
  })
  await t.test('somebody else can sit down', async () => {
    await page.getByRole('button', { name: 'Not you?' }).click()
    await page.getByRole('heading', { name: 'Sign in to answer' }).waitFor()
    await signInHere(page, ben)
    assert.match(await page.locator('main').innerText(), /Signed in for this request as Ben/)
    await box(page, 'Team').waitFor()
  })
  await t.test('a reload asks again who sits there, and no session began', async () => {
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in to answer' }).waitFor()
    assert.deepEqual((await c.cookies()).map((x) => x.name), ['cairn-browser'])
    await page.goto('/agents')
    assert.match(page.url(), /\/sign-in/)
  })
  assert.deepEqual(c.trouble, [])
})

test('Connect waits for a deliberate act', async (t) => {
  const { server, ana } = await shared(t)
  const a = await agent(t, server)
  const { c, page } = await asked(t, ana, a)
  // Without a pointer or a key, as if another page had placed the click.
  await page.evaluate(() => { const b = document.querySelector('input[name=heaps]'); b.checked = true; b.dispatchEvent(new Event('change', { bubbles: true })) })
  await page.waitForTimeout(1000)
  assert.equal(await connect(page).isDisabled(), true)
  await page.mouse.move(20, 20)
  assert.equal(await connect(page).isDisabled(), false)
  assert.deepEqual(c.trouble, [])
})

for (const postgres of [false, true]) {
  test(`what the label says is what is granted, on ${postgres ? 'PostgreSQL' : 'SQLite'}`, async (t) => {
    const server = await serve(t, { postgres })
    const ana = await owner(server)
    const a = await agent(t, server)
    const { c, page, address } = await asked(t, ana, a)
    await box(page, 'Work').check()
    await page.getByRole('radio', { name: 'Read and write' }).check()
    await page.getByRole('radio', { name: /Stay connected/ }).check()
    assert.equal(await connect(page).innerText(), 'Connect with write access')
    await connect(page).dblclick()
    const { code } = await a.answer()
    await page.waitForURL(new RegExp(a.host))

    // Not fetched yet: the same address shows the way back, with the same code.
    await page.goto(address)
    const back = page.getByRole('link', { name: /Go back to/ })
    assert.equal(new URL(await back.getAttribute('href')).searchParams.get('code'), code)

    await a.redeem(code)
    assert.equal(a.tokens.scope, 'cairn.read cairn.write offline_access')
    assert.ok(a.tokens.refresh_token)
    assert.ok((await a.tools()).includes('create_work_task'))
    const made = await a.call('create_work_task', { name: 'Oil the hinges' })
    assert.ok(!made.body.result?.isError, JSON.stringify(made.body))
    const refused = await a.call('create_personal_task', { name: 'Not mine' })
    assert.ok(refused.body.error || refused.body.result.isError, JSON.stringify(refused.body))

    await page.goto(address)
    assert.match(await page.locator('main').innerText(), /already answered.*has its key/)

    const [only, ...more] = await agents(ana)
    assert.equal(more.length, 0, 'two fast clicks made one agent')
    const signedIn = await ana.context(t)
    const own = await signedIn.newPage()
    await own.goto(`/agents/${only.id}`)
    assert.match(await own.locator('main').innerText(), /Reads and writes all areas in Work\./)
    assert.deepEqual([...c.trouble, ...signedIn.trouble], [])
  })
}

test('read only: the token can not write', async (t) => {
  const { server, ana } = await shared(t)
  const a = await letIn(t, ana, await agent(t, server))
  assert.equal(a.tokens.scope, 'cairn.read')
  assert.equal(a.tokens.refresh_token, undefined)
  const r = await a.call('create_personal_task', { name: 'No' })
  assert.equal(r.status, 403)
  const challenge = r.headers.get('www-authenticate')
  assert.match(challenge, /error="insufficient_scope"/)
  assert.match(challenge, /scope="cairn\.read cairn\.write"/)
})

test("Don't connect tells the program so", async (t) => {
  const { server, ana } = await shared(t)
  const a = await agent(t, server)
  const { c, page, address } = await asked(t, ana, a)
  await page.getByRole('button', { name: "Don't connect" }).click()
  assert.equal((await a.answer()).error, 'access_denied')
  await page.waitForURL(new RegExp(a.host))
  await page.goto(address)
  assert.match(await page.locator('main').innerText(), /was not let in/)
  assert.deepEqual(await agents(ana), [])
  assert.deepEqual(c.trouble, [])
})

test('Back, and two presses at once', async (t) => {
  const { server, ana } = await shared(t)
  const a = await agent(t, server)
  const { c, page } = await asked(t, ana, a)
  const [personal] = Object.values(await ana.heaps())
  const fields = await page.locator('form[data-consent]').evaluate((f) => Object.fromEntries(new FormData(f)))
  const press = () => c.request.post('/oauth/authorize', { form: { ...fields, heaps: personal, act: 'connect' }, headers: { Origin: server.url }, maxRedirects: 0 })
  const both = await Promise.all([press(), press()])
  const to = both.map((r) => r.headers().location)
  assert.equal(to[0], to[1])
  await page.goto(to[0])
  await a.redeem((await a.answer()).code)
  assert.equal((await agents(ana)).length, 1)
  // The page that was posted is kept nowhere, so Back leads past it.
  await page.evaluate(() => history.go(-2))
  await page.waitForURL(/\/oauth\/authorize\?/)
  assert.match(await page.locator('main').innerText(), /already answered/)
  assert.deepEqual(c.trouble, [])
})

test('a request belongs to the browser that it came by', async (t) => {
  const { server, ana } = await shared(t)
  const a = await agent(t, server)
  const { c, page } = await asked(t, ana, a)
  const request = await page.locator('input[name=request]').first().inputValue()
  const other = await context(t, server)
  const p = await other.newPage()
  await p.goto(`/oauth/authorize/wait?request=${request}`)
  assert.equal(await p.getByRole('heading', { level: 1 }).innerText(), "This request can't be answered")
  const known = (await p.locator('main').innerText()).replace(/[0-9a-f-]{20,}/g, '')
  await p.goto('/oauth/authorize/wait?request=01a22cf2-514b-7902-a8e0-590a4f1a92cf')
  assert.equal((await p.locator('main').innerText()).replace(/[0-9a-f-]{20,}/g, ''), known)
  const r = await other.request.post('/oauth/authorize', { form: { request, act: 'cancel' }, headers: { Origin: server.url } })
  assert.equal(r.status(), 400)
  assert.equal((await other.request.get(`/oauth/authorization-requests/${request}/status`)).status(), 404)
  const open = await c.request.get(`/oauth/authorization-requests/${request}/status`)
  assert.equal((await open.json()).state, 'open')
})

test('bad requests stay on our own page', async (t) => {
  const { server } = await shared(t)
  const a = await agent(t, server)
  const c = await context(t, server)
  const page = await c.newPage()
  for (const [field, value] of [['client_id', 'nobody'], ['redirect_uri', 'https://evil.example/callback']]) {
    const u = new URL(a.address())
    u.searchParams.set(field, value)
    assert.equal((await page.goto(u.href)).status(), 400)
    assert.equal(new URL(page.url()).host, server.host)
    assert.match(await page.locator('main').innerText(), /Nothing was granted/)
  }
  assert.deepEqual(c.trouble, [])
})

/** The waiting page of a new request, with its code. */
async function waiting(t, server, a) {
  const c = await context(t, server, { hosts: [a.host] })
  const page = await c.newPage()
  await page.goto(a.address())
  await page.getByRole('link', { name: 'Show a code to answer it there' }).click()
  await page.getByRole('heading', { name: 'Answer it elsewhere' }).waitFor()
  return { c, page, code: await page.locator('.pairing').innerText() }
}

/** Types a code on the page for it. */
async function type(page, code) {
  await page.goto('/pair')
  await page.getByRole('textbox', { name: 'Code' }).fill(code)
  await page.getByRole('button', { name: 'Go on' }).click()
}

for (const postgres of [false, true]) {
  test(`a code, typed on another device, on ${postgres ? 'PostgreSQL' : 'SQLite'}`, async (t) => {
    const server = await serve(t, { postgres })
    const ana = await owner(server)
    const a = await agent(t, server)
    const { c, page, code } = await waiting(t, server, a)
    assert.match(code, /^[B-Z2-9]{4}-[B-Z2-9]{4}$/)
    assert.match(await page.locator('[data-status]').innerText(), /works until .*\d\d:\d\d/)

    const c2 = await ana.context(t)
    const there = await c2.newPage()
    await type(there, 'BCDF-GHJK')
    await there.locator('.errors').waitFor()
    assert.equal(await there.locator('[data-consent]').count(), 0)

    await type(there, code.toLowerCase().replace('-', ' '))
    const facts = await there.locator('dl.facts').innerText()
    assert.match(facts, /Asked from/)
    assert.match(facts, /a program on the device that asks/)
    assert.doesNotMatch(await there.locator('main').innerText(), /this device/)
    await box(there, 'Personal').check()
    assert.equal(await connect(there).isDisabled(), true)
    assert.equal(await there.locator('[data-missing]').innerText(), 'Say first that you started it yourself.')
    await there.getByRole('radio', { name: "No, or I'm not sure" }).check()
    assert.equal(await connect(there).isDisabled(), true)
    const unsaid = await there.locator('form[data-consent]').evaluate((f) => [...new FormData(f)].filter(([k]) => k !== 'started'))
    const r = await c2.request.post('/pair', { form: { ...Object.fromEntries(unsaid), act: 'connect' }, headers: { Origin: server.url } })
    assert.equal(r.status(), 400)
    assert.deepEqual(await agents(ana), [])

    await there.getByRole('radio', { name: 'Yes, I started it' }).check()
    await connect(there).click()
    await there.getByText(/^Let in\./).waitFor()
    await page.waitForURL(new RegExp(a.host))
    await a.redeem((await a.answer()).code)
    assert.equal(a.tokens.scope, 'cairn.read')
    assert.deepEqual([...c.trouble, ...c2.trouble], [])
  })
}

test('a request sent to somebody by name', async (t) => {
  const { server, ana } = await shared(t)
  const ben = await another(server, ana, 'Ben')
  const send = async (name) => {
    const a = await agent(t, server)
    const w = await waiting(t, server, a)
    await w.page.getByLabel('Name of their account').fill(name)
    await w.page.getByRole('button', { name: 'Send it' }).click()
    await w.page.getByText('Sent, if there is an account of that name.').waitFor()
    const words = (await w.page.locator('main').innerText()).replaceAll(w.code, 'CODE').replace(/\d\d:\d\d/g, 'TIME')
    return { a, words, ...w }
  }
  const real = await send('ben')
  const none = await send('Nobody Here')
  assert.equal(none.words, real.words, 'an unknown name looks the same')

  const his = await ben.context(t)
  const b = await his.newPage()
  await b.goto('/agents')
  await b.getByRole('heading', { name: 'Asking to be let in' }).waitFor()
  assert.equal(await b.getByRole('link', { name: /Type the code/ }).count(), 1)
  assert.doesNotMatch(await b.locator('main').innerText(), new RegExp(real.code))

  const hers = await ana.context(t)
  const p = await hers.newPage()
  await type(p, real.code)
  await p.locator('.errors').waitFor()
  assert.equal(await p.locator('[data-consent]').count(), 0, 'it was sent to somebody else')

  await b.getByRole('link', { name: /Type the code/ }).click()
  await b.getByRole('textbox', { name: 'Code' }).fill(real.code)
  await b.getByRole('button', { name: 'Go on' }).click()
  await b.getByRole('radio', { name: 'Yes, I started it' }).check()
  await box(b, 'Work').check()
  await connect(b).click()
  await b.getByText(/^Let in\./).waitFor()
  await real.page.waitForURL(new RegExp(real.a.host))
  await real.a.redeem((await real.a.answer()).code)
  assert.deepEqual(await agents(ana), [])
  assert.equal((await agents(ben)).length, 1)
  assert.deepEqual([...real.c.trouble, ...none.c.trouble, ...his.trouble, ...hers.trouble], [])
})

test('the same program asks for more', async (t) => {
  const { server, ana } = await shared(t)
  const a = await letIn(t, ana, await agent(t, server))
  const old = a.tokens.access_token
  const [before] = await agents(ana)

  const { c, page } = await asked(t, ana, a)
  const notice = await page.locator('.notice', { hasText: 'Today:' }).innerText()
  assert.match(notice, /Today: Reads all areas in Personal\. New: it asks to write\./)
  assert.match(await page.locator('dl.facts').innerText(), /You let it in before, as .Hermes.\./)
  assert.equal(await page.getByRole('radio', { name: 'As Hermes' }).isChecked(), true)
  assert.equal(await box(page, 'Personal').isChecked(), true)
  assert.equal(await page.getByRole('radio', { name: 'Read only' }).isChecked(), true)
  await page.getByRole('radio', { name: 'Read and write' }).check()
  await connect(page).click()
  await a.redeem((await a.answer()).code)
  assert.equal(a.tokens.scope, 'cairn.read cairn.write')
  assert.equal((await a.call('create_personal_task', { name: 'Oil the hinges' })).status, 200)
  assert.equal((await a.call('list_tasks', {}, old)).status, 401, 'the key it had')

  const [now, ...more] = await agents(ana)
  assert.deepEqual([more.length, now.id, now.write], [0, before.id, true])
  assert.deepEqual(c.trouble, [])
})

test('the waiting page says when the server is away, and goes on', async (t) => {
  const { server, ana } = await shared(t)
  const a = await agent(t, server)
  const { c, page, code } = await waiting(t, server, a)
  const notice = page.locator('[data-lost]')
  assert.equal(await notice.isVisible(), false)
  await server.stop()
  await notice.waitFor({ state: 'visible' })
  assert.match(await notice.innerText(), /The server didn't answer just now/)
  await server.begin()
  await notice.getByRole('button', { name: 'Retry now' }).click()
  await notice.waitFor({ state: 'hidden' })

  const page2 = await (await ana.context(t)).newPage()
  await type(page2, code)
  await page2.getByRole('radio', { name: 'Yes, I started it' }).check()
  await box(page2, 'Personal').check()
  await connect(page2).click()
  await page.waitForURL(new RegExp(a.host))
  await a.redeem((await a.answer()).code)
  assert.deepEqual(c.trouble, [])
})

test('without script, by a mailed code', async (t) => {
  const mail = await mailServer(t)
  const server = await serve(t, { mail })
  const ana = await owner(server)
  await ana.confirmEmail('ana@example.org')
  const a = await agent(t, server)
  const c = await context(t, server, { hosts: [a.host], javaScriptEnabled: false })
  const page = await c.newPage()
  await page.goto(a.address())
  await page.getByLabel('Name or e-mail address').fill('ana@example.org')
  await page.getByRole('button', { name: 'Mail me a code' }).click()
  await page.getByRole('textbox', { name: 'Code' }).fill(await mail.code('ana@example.org'))
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()

  // Nothing ticked: the page says what is missing, and keeps the rest.
  await page.getByRole('radio', { name: 'Read and write' }).check()
  await connect(page).click()
  assert.match(await page.locator('.errors').innerText(), /heap/)
  assert.equal(await page.getByRole('radio', { name: 'Read and write' }).isChecked(), true)
  await box(page, 'Work').check()
  await connect(page).click()
  await a.redeem((await a.answer()).code)
  assert.equal(a.tokens.scope, 'cairn.read cairn.write')
  assert.deepEqual(c.trouble, [])
})

test('a request that is ten minutes old can be answered nowhere', async (t) => {
  const { server, ana } = await shared(t)
  const expire = () => {
    // The clock is the machine's: the moment is moved instead, behind the server's back.
    const db = new DatabaseSync(path.join(server.home, 'data', 'cairn.db'), { timeout: 5000 })
    db.exec(`UPDATE oauth_attempt SET expires_at = created_at WHERE state IN ('open', 'approved')`)
    db.close()
  }
  const a = await agent(t, server)
  const { page } = await asked(t, ana, a)
  await box(page, 'Personal').check()
  await page.mouse.move(200, 200)
  expire()
  await connect(page).click()
  await page.getByRole('heading', { name: 'Too old' }).waitFor()
  assert.match(await page.locator('main').innerText(), /Nothing was granted/)
  assert.deepEqual(await agents(ana), [])

  const b = await agent(t, server)
  const w = await waiting(t, server, b)
  expire()
  const there = await (await ana.context(t)).newPage()
  await type(there, w.code)
  await there.locator('.errors').waitFor()
  await w.page.getByRole('heading', { name: 'Too old' }).waitFor()

  // Decided in time, but the program comes for its key too late.
  const late = await agent(t, server)
  const p = await asked(t, ana, late)
  await box(p.page, 'Personal').check()
  await p.page.mouse.move(200, 200)
  await connect(p.page).click()
  await p.page.waitForURL(new RegExp(late.host))
  expire()
  await assert.rejects(late.redeem((await late.answer()).code), /invalid_grant/)
  assert.deepEqual(await agents(ana), [])
})
