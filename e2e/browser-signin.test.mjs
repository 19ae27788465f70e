// Getting in: the first set-up, the ways to sign in, sessions, new accounts, and what a page without WebCrypto says.
import assert from 'node:assert/strict'
import test from 'node:test'
import { agent, another, context, letIn, mailServer, owner, Person, serve } from './browser.mjs'

/** A passkey device that says yes to everything, in place of a finger. */
async function passkeys(c, page) {
  const cdp = await c.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  await cdp.send('WebAuthn.addVirtualAuthenticator', { options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true,
    isUserVerified: true, automaticPresenceSimulation: true } })
}

const signOut = async (page) => {
  await page.locator('details.menu summary').click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('You are signed out.').waitFor()
}

const byWords = async (page, text) => {
  await page.getByLabel('Twelve words').fill(text)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

test('set-up by the printed link, then in by passkey and by the twelve words', async (t) => {
  const server = await serve(t, { name: 'localhost' })
  const c = await context(t, server, { permissions: ['clipboard-read', 'clipboard-write'] })
  const page = await c.newPage()
  await passkeys(c, page)

  await page.goto('/setup#AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA')
  await page.locator('[data-problem]').waitFor()
  assert.equal(await page.locator('[data-form=account]').isVisible(), false, 'a wrong link')
  await page.goto('about:blank')
  await page.goto('/setup')
  await page.getByText('The link is not whole.').waitFor()

  await page.goto('about:blank')
  await page.goto(server.setup)
  await page.getByLabel('Your name').fill('Ana')
  assert.equal(await page.getByLabel('Time zone').inputValue(), 'Europe/Lisbon')
  const words = (await page.locator('.words li').allInnerTexts()).join(' ')
  assert.equal(words.split(' ').length, 12)
  await page.getByRole('button', { name: 'Copy the twelve words' }).click()
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), words)
  await page.getByLabel('I have written them down').check()
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.getByRole('heading', { name: 'Sign in with one touch from now on' }).waitFor()
  assert.doesNotMatch(page.url(), /#/)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByRole('heading', { name: 'Connect your first agent' }).waitFor()
  assert.equal(await page.locator('#mcp-url').innerText(), `${server.url}/mcp`)
  await page.getByRole('link', { name: 'Later' }).click()
  await page.getByRole('heading', { name: 'No agent is connected yet' }).waitFor()

  await t.test('the link works once', async (t) => {
    const p = await (await context(t, server)).newPage()
    await p.goto(server.setup)
    await p.locator('[data-problem]').waitFor()
    assert.equal(await p.locator('[data-form=account]').isVisible(), false)
  })

  await t.test('by passkey', async () => {
    await signOut(page)
    await page.goto('/settings')
    assert.match(page.url(), /\/sign-in\?next=%2Fsettings/)
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByRole('heading', { name: 'Ways to sign in' }).waitFor()
    const ways = await page.locator('section[aria-labelledby=ways]').innerText()
    assert.match(ways, /Twelve words/)
    assert.match(ways, /For localhost\./)
  })

  await t.test('by the twelve words, pasted with their numbers', async () => {
    await signOut(page)
    await page.goto('/sign-in')
    await byWords(page, 'zebra zoo')
    const line = page.locator('[data-problem]')
    await line.filter({ hasText: 'There must be twelve words' }).waitFor()
    await byWords(page, words.replace(/^\w+/, 'cairnx'))
    await line.filter({ hasText: 'is none of the words' }).waitFor()
    const turned = words.split(' ').reverse().join(' ')
    await byWords(page, turned)
    await line.filter({ hasText: /don't belong together|fit|no account|right/ }).waitFor()
    assert.equal(await line.evaluate((e) => e === document.activeElement), true)
    await page.evaluate((text) => navigator.clipboard.writeText(text), words.split(' ').map((w, i) => `${i + 1}. ${w}`).join('\n'))
    await page.getByLabel('Twelve words').press('Control+A')
    await page.keyboard.press('Control+V')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.waitForURL(/\/agents/)
  })

  await t.test('the words of nobody', async (t) => {
    const stranger = await new Person(server, 'Nobody').join('sign-up').catch((e) => e)
    const p = await (await context(t, server)).newPage()
    await p.goto('/sign-in')
    await byWords(p, stranger.words)
    await p.getByRole('heading', { name: 'Waiting to be admitted' }).waitFor()
  })
  assert.deepEqual(c.trouble, [])
})

test('a mailed code, and sessions', async (t) => {
  const mail = await mailServer(t)
  const server = await serve(t, { mail })
  const ana = await owner(server)
  const c = await ana.context(t)
  const page = await c.newPage()
  await page.goto('/settings')
  await page.getByLabel('E-mail address').fill('ana@example.org')
  await page.getByRole('button', { name: 'Save and confirm' }).click()
  await page.getByRole('textbox', { name: 'Code' }).fill('00000000')
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.locator('.errors').waitFor()
  await page.getByRole('textbox', { name: 'Code' }).fill(await mail.code('ana@example.org'))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByText('Address confirmed.', { exact: true }).waitFor()

  const c2 = await context(t, server, { userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' })
  const p2 = await c2.newPage()
  await p2.goto('/sign-in?next=/heaps')
  await p2.getByLabel('Name or e-mail address').fill('ana@example.org')
  await p2.getByRole('button', { name: 'Mail me a code' }).click()
  await p2.getByRole('textbox', { name: 'Code' }).fill('00000000')
  await p2.getByRole('button', { name: 'Sign in', exact: true }).click()
  await p2.locator('.errors').waitFor()
  await p2.getByRole('textbox', { name: 'Code' }).fill(await mail.code('ana@example.org'))
  await p2.getByRole('button', { name: 'Sign in', exact: true }).click()
  await p2.waitForURL(/\/heaps/)

  await page.goto('/settings')
  const rows = page.locator('section[aria-labelledby=sessions] .row')
  assert.equal(await rows.count(), 2)
  assert.match(await rows.filter({ hasText: 'Firefox' }).innerText(), /mailed code|e-mail|code/i)
  await rows.filter({ hasText: 'Firefox' }).getByRole('button', { name: /^End/ }).click()
  await page.getByText('Session ended.').waitFor()
  await p2.goto('/heaps')
  assert.match(p2.url(), /\/sign-in/)

  // An address that nobody has looks the same, and gets nothing.
  await p2.goto('/sign-in')
  await p2.getByLabel('Name or e-mail address').fill('nobody@example.org')
  await p2.getByRole('button', { name: 'Mail me a code' }).click()
  await p2.getByText('If there is an account with that name or address').waitFor()
  assert.deepEqual(mail.mails.filter((m) => m.to.includes('nobody@example.org')), [])

  await signOut(page)
  await page.goto('/agents')
  assert.match(page.url(), /\/sign-in/)
  assert.deepEqual([...c.trouble, ...c2.trouble], [])
})

test('a new account waits, is admitted, and is out at once when disabled', async (t) => {
  const server = await serve(t)
  const ana = await owner(server)
  const c = await context(t, server)
  const page = await c.newPage()
  await page.goto('/sign-up')
  await page.getByLabel('Your name').fill('Ben')
  const words = (await page.locator('.words li').allInnerTexts()).join(' ')
  await page.getByLabel('I have written them down').check()
  await page.getByRole('button', { name: 'Ask for the account' }).click()
  await page.getByRole('heading', { name: 'Waiting to be admitted' }).waitFor()

  const admin = await ana.context(t)
  const list = await admin.newPage()
  await list.goto('/admin/accounts')
  await list.getByRole('button', { name: 'Admit Ben' }).click()
  await list.getByText('Admitted. They can sign in now.').waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'No agent is connected yet' }).waitFor()
  await page.goto('/admin/accounts')
  await page.getByRole('heading', { name: 'Nothing here' }).waitFor()

  const ben = Object.assign(new Person(server, 'Ben'), { words })
  const a = await letIn(t, ben, await agent(t, server))
  assert.equal((await a.call('list_tasks')).status, 200)
  await list.getByRole('button', { name: 'Disable Ben' }).click()
  await list.getByText('Disabled. Their sessions, agents and tokens work no longer.').waitFor()
  await page.goto('/agents')
  assert.match(page.url(), /\/sign-in/)
  assert.equal((await a.call('list_tasks')).status, 401)
  await byWords(page, words)
  await page.locator('[data-problem]').filter({ hasText: /./ }).waitFor()
  assert.deepEqual([...c.trouble, ...admin.trouble], [])
})

test('plain http under a name: the page says what is missing and how to mend it', async (t) => {
  const server = await serve(t, { name: 'cairn.test' })
  const c = await context(t, server)
  const page = await c.newPage()
  const { port } = new URL(server.url)
  for (const at of ['/sign-in', '/sign-up', new URL(server.setup).pathname + new URL(server.setup).hash]) {
    await page.goto('about:blank')
    await page.goto(at)
    const why = page.locator('[data-why]').first()
    await why.waitFor()
    const text = await why.innerText()
    assert.match(text, /plain http, where browsers lend no cryptography/, at)
    assert.ok(text.includes(`http://localhost:${port}`), text)
    assert.match(text, /PUBLIC_URL/, at)
    assert.equal(await page.getByLabel('Twelve words').isVisible(), false)
  }
  assert.deepEqual(c.trouble, [])
})
