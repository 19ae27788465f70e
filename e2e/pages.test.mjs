// Every page, in its states: rules of access by axe, in light and dark and on a narrow screen; the keyboard; no script; and,
// with SCREENSHOTS=1, a picture of each in screenshots/.
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { agent, another, axeSource, context, letIn, mailServer, owner, Person, serve, signInHere } from './browser.mjs'
import { shrink } from './png.mjs'

const shots = process.env.SCREENSHOTS ? path.join(import.meta.dirname, 'screenshots') : ''

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** The problems that axe finds on a page as it is now; `colours` asks only for the rules that look at those. */
async function axe(page, colours, within = 'html') {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource)
  const runOnly = colours ? { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } : { type: 'tag', values: tags }
  const found = await page.evaluate(([within, runOnly]) => window.axe.run(within, { runOnly, resultTypes: ['violations', 'incomplete'] }), [within, runOnly])
  // What axe can't decide counts as a fault: so far there is nothing of that kind that would have to be excused here.
  return [...found.violations, ...found.incomplete].map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.html} (${n.failureSummary ?? n.any?.[0]?.message})`).join('; ')}`)
}

/** Goes through a page by Tab alone: every control is reached, and the first stop is the link to the content. */
async function tab(page) {
  await page.evaluate(() => {
    window.stops = new Set()
    window.first = undefined
    const controls = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
    // One of a group of radio buttons is a stop, the arrows reach the others.
    const group = (e) => e.type === 'radio' ? document.querySelector(`input[name="${e.name}"]:checked`) ?? document.querySelector(`input[name="${e.name}"]`) : e
    document.addEventListener('focusin', (e) => { window.first ??= e.target.className; window.stops.add(e.target) })
    window.wanted = new Set(controls.filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && !e.closest('details:not([open]) > :not(summary)')).map(group))
  })
  const most = await page.evaluate(() => window.wanted.size) + 16
  const left = () => page.evaluate(() => [...window.wanted].filter((w) => !window.stops.has(w)).length)
  for (let i = 0; i < most && (i % 8 || await left()); i++) await page.keyboard.press('Tab')
  const missed = await page.evaluate(() => [...window.wanted].filter((w) => !window.stops.has(w)).map((w) => w.outerHTML.slice(0, 120)))
  return { first: await page.evaluate(() => window.first), missed }
}

// A state that differs from another page's picture in a few words has none of its own.
const unseen = /-error$|-all$|-found$|-none$|-trashed$|^trash-|-menu$|-cursor$|-sent$|-done$|-link$|-set-up$|-signed-in$|-new$|^(tokens|heaps)-empty$|^help$/

/**
 * All that is asked of a page in one state. `focused` says that the state put the focus somewhere, `within` what to look at
 * where something covers the rest.
 */
async function check(t, page, name, { focused = false, within } = {}) {
  await t.test(name, async () => {
    assert.match(await page.title(), / · Cairn$/)
    assert.equal(await page.locator('h1').count(), 1)
    const outline = await page.locator('h1, h2, h3').evaluateAll((all) => all.filter((h) => h.checkVisibility()).map((h) => Number(h.tagName[1])))
    assert.ok(outline.every((level, i) => i === 0 ? level === 1 : level <= outline[i - 1] + 1), `headings ${outline}`)

    const wrong = []
    await page.setViewportSize({ width: 1280, height: 800 })
    const stops = await tab(page)
    if (!focused && stops.first !== 'skip') wrong.push(`the first Tab leads to ${stops.first}`)
    wrong.push(...stops.missed.map((m) => `no Tab leads to ${m}`))
    await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0) })
    for (const [width, colorScheme] of [[1280, 'light'], [1280, 'dark'], [320, 'light']]) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      wrong.push(...(await axe(page, colorScheme === 'dark', within)).map((v) => `${width} ${colorScheme}: ${v}`))
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      if (over > 0) wrong.push(`${width}: ${over}px too wide`)
    }
    if (shots && !unseen.test(name)) await picture(page, name)
    assert.deepEqual(wrong, [])
  })
}

async function picture(page, name) {
  await mkdir(shots, { recursive: true })
  for (const [kind, width, height, colorScheme] of [['light', 1280, 800, 'light'], ['dark', 1280, 800, 'dark'], ['phone', 390, 844, 'light']]) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme })
    await page.mouse.move(0, 0)
    await writeFile(path.join(shots, `${name}-${kind}.png`), shrink(await page.screenshot({ fullPage: true, animations: 'disabled' })))
  }
}

/** A page per name: where it is, and what brings it into its state. */
async function sweep(t, c, pages) {
  const page = await c.newPage()
  for (const [name, to, state, options] of pages) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto('about:blank')
    await page.goto(to)
    await state?.(page)
    await check(t, page, name, { focused: Boolean(state), ...options })
  }
  await page.close()
  assert.deepEqual(c.trouble, [])
}

test('before anybody signed in', async (t) => {
  const server = await serve(t)
  await sweep(t, await context(t, server), [
    ['front', '/'],
    ['help', '/help'],
    ['missing', '/nothing-here'],
    ['sign-in-not-set-up', '/sign-in'],
    ['sign-up', '/sign-up', (p) => p.locator('.words li').first().waitFor()],
    ['setup-no-link', '/setup', (p) => p.getByText('The link is not whole.').waitFor()],
    ['setup', server.setup, (p) => p.locator('.words li').first().waitFor()],
  ])
})

/** A server on which there is something in every list. */
async function filled(t) {
  const mail = await mailServer(t)
  const server = await serve(t, { mail })
  const ana = await owner(server)
  await ana.confirmEmail('ana@example.org')
  const ben = await another(server, ana, 'Ben')
  const carla = await new Person(server, 'Carla').join('sign-up')
  await another(server, ana, 'Dora')
  const { accounts } = await ana.ask('list_accounts')
  await ana.ask('disable_account', { account: accounts.find((a) => a.name === 'Dora').id })

  await ana.ask('create_heap', { name: 'Allotment', kind: 'other' })
  await ana.ask('invite_member', { heap: 'Allotment', account: 'Ben', role: 'editor' })
  const [invite] = (await ben.ask('get_account')).invites
  await ben.ask('respond_invite', { invite_id: invite.id, accept: true })
  await ben.ask('create_heap', { name: 'Choir', kind: 'other' })
  await ben.ask('invite_member', { heap: 'Choir', account: 'Ana', role: 'viewer' })
  await ana.ask('invite_member', { heap: 'Work', account: 'Ben', role: 'viewer' })

  const hermes = await letIn(t, ana, await agent(t, server), { heaps: ['Personal', 'Allotment'], write: true, stay: true })
  await hermes.call('list_tasks')
  await letIn(t, ana, await agent(t, server, { name: 'Argus' }), { heaps: ['Work'] })
  await letIn(t, ana, await agent(t, server, { name: `Very${'Long'.repeat(12)}Name` }), { heaps: ['Personal'] })
  const { agents } = await ana.ask('list_agents', {})
  const id = (name) => agents.find((a) => a.name.startsWith(name)).id
  await ana.ask('pause_agents', { agent: id('Argus') })
  await ana.ask('create_token', { name: 'backup script', heaps: ['Work'], read_only: true })
  const old = await ana.ask('create_token', { name: 'old laptop', read_only: false })
  await ana.ask('revoke_token', { token: old.token.id })
  return { server, mail, ana, ben, carla, id }
}

test('with something in every list', async (t) => {
  const f = await filled(t)
  const { server, ana } = f
  const heaps = await ana.heaps()

  const a = await agent(t, server, { name: 'Mercury' })
  const asking = await context(t, server, { hosts: [a.host] })
  const page = await asking.newPage()
  await page.goto(a.address())
  await check(t, page, 'consent-sign-in')
  await page.setViewportSize({ width: 1280, height: 800 })
  await signInHere(page, ana)
  await check(t, page, 'consent-choice', { focused: true })
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('checkbox', { name: 'Personal', exact: true }).check()
  await page.getByRole('radio', { name: 'Read and write' }).check()
  await page.getByText('All five areas. Choose').click()
  await check(t, page, 'consent-chosen', { focused: true })
  await page.getByRole('button', { name: "Don't connect" }).click()
  await a.answer()
  await page.waitForURL(new RegExp(a.host))
  await page.goto(a.address())
  await page.getByRole('link', { name: 'Show a code to answer it there' }).click()
  await check(t, page, 'consent-wait')
  const code = await page.locator('.pairing').innerText()
  await page.getByLabel('Name of their account').fill('Ana')
  await page.getByRole('button', { name: 'Send it' }).click()
  await page.getByText('Sent, if there is').waitFor()
  await check(t, page, 'consent-sent')

  const signedIn = await ana.context(t)
  const uploads = await signedIn.newPage()
  await uploads.setViewportSize({ width: 1280, height: 800 })
  await uploads.goto('/files')
  await uploads.getByLabel('Heap', { exact: true }).selectOption('Allotment')
  await uploads.getByLabel('Files', { exact: true }).setInputFiles([
    { name: 'Beds "north" & süd.png', mimeType: 'image/png', buffer: await uploads.screenshot() },
    { name: 'drawing.svg', mimeType: 'image/svg+xml', buffer: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>') },
    { name: `${'very-long-name-'.repeat(12)}.txt`, mimeType: 'text/plain', buffer: Buffer.from('Water the ferns.') },
    { name: 'old plan.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7 nothing') },
  ])
  await uploads.getByRole('button', { name: 'Upload' }).click()
  await uploads.getByText('Uploaded.').waitFor()
  assert.equal(await uploads.getByRole('link', { name: 'Beds "north" & süd.png' }).count(), 1)
  const picture = uploads.locator('img.thumbnail')
  assert.deepEqual(await picture.evaluate(async (e) => { await e.decode(); return [e.naturalWidth, e.naturalHeight] }), [160, 100])
  await uploads.getByRole('button', { name: 'Delete old plan.pdf' }).click()
  await uploads.getByText('Moved to the trash').waitFor()
  assert.equal(await uploads.getByText('old plan.pdf').count(), 0)
  await uploads.close()
  await sweep(t, signedIn, [
    ['files', '/files'],
    ['files-trash', '/files?trash=1'],
    ['files-error', '/files', async (p) => {
      await p.getByLabel('Files', { exact: true }).evaluate((e) => e.removeAttribute('required'))
      await p.getByRole('button', { name: 'Upload' }).click()
      await p.locator('.errors').waitFor()
    }],
    ['agents', '/agents'],
    ['agents-all', '/agents?all=1'],
    ['agents-menu', '/agents', (p) => p.locator('details.menu summary').click(), { within: '.top' }],
    ['agent', `/agents/${f.id('Hermes')}`],
    ['agent-error', `/agents/${f.id('Hermes')}`, async (p) => {
      for (const name of ['Personal', 'Allotment']) await p.getByRole('checkbox', { name, exact: true }).uncheck()
      await p.getByRole('button', { name: 'Save' }).click()
      await p.locator('.errors').waitFor()
    }],
    ['disconnect', `/agents/${f.id('Argus')}/disconnect`],
    ['connect', '/agents/connect'],
    ['connect-cursor', '/agents/connect?client=cursor'],
    ['pair', '/pair'],
    ['pair-error', '/pair', async (p) => {
      await p.getByRole('textbox', { name: 'Code' }).fill('BCDF-GHJK')
      await p.getByRole('button', { name: 'Go on' }).click()
      await p.locator('.errors').waitFor()
    }],
    ['pair-choice', '/pair', async (p) => {
      await p.getByRole('textbox', { name: 'Code' }).fill(code)
      await p.getByRole('button', { name: 'Go on' }).click()
      await p.locator('[data-consent]').waitFor()
    }],
    ['tokens', '/tokens'],
    ['tokens-error', '/tokens', async (p) => {
      await p.getByLabel('Name', { exact: true }).fill('x')
      await p.getByRole('radio', { name: 'Only these' }).check()
      await p.getByText('Areas, addresses and rate').click()
      await p.getByRole('button', { name: 'Create token' }).click()
      await p.locator('.errors').waitFor()
    }],
    ['token-made', '/tokens', async (p) => {
      await p.getByLabel('Name', { exact: true }).fill('kitchen display')
      await p.getByRole('button', { name: 'Create token' }).click()
      await p.locator('#secret').waitFor()
    }],
    ['heaps', '/heaps'],
    ['heap', `/heaps/${heaps.Allotment}`],
    ['settings', '/settings'],
    ['accounts', '/admin/accounts'],
    ['prove', '/prove?next=/settings'],
    ['missing-signed-in', '/agents/01a22cf2-514b-7902-a8e0-590a4f1a92cf'],
  ])
  assert.deepEqual(asking.trouble, [])

  await t.test('without script', async (t) => {
    const [name, value] = ana.cookie.split('=')
    const c = await context(t, server, { javaScriptEnabled: false, cookies: [{ name, value, url: server.url }] })
    const p = await c.newPage()
    for (const to of ['/agents', `/agents/${f.id('Hermes')}`, `/agents/${f.id('Hermes')}/disconnect`, '/agents/connect', '/pair', '/tokens', '/files', '/files?trash=1', '/heaps', `/heaps/${heaps.Work}`, '/settings', '/admin/accounts', '/prove', '/help', '/docs', '/docs/new', '/docs/trash']) {
      assert.equal((await p.goto(to)).status(), 200, to)
      assert.equal(await p.locator('h1').isVisible(), true, to)
      assert.deepEqual(await p.locator('form:not([data-form]) button:visible').evaluateAll((all) => all.filter((b) => b.disabled).map((b) => b.textContent)), [], to)
    }
    await p.goto('/agents')
    await p.getByRole('button', { name: 'Pause Hermes' }).click()
    assert.match(await p.locator('[role=status]').innerText(), /^Paused\./)
    await p.goto('/files?trash=1')
    await p.getByRole('button', { name: 'Restore old plan.pdf' }).click()
    assert.match(await p.locator('[role=status]').innerText(), /^Brought back\./)
    await p.goto('/files')
    await p.getByLabel('Files', { exact: true }).setInputFiles({ name: 'without script.txt', mimeType: 'text/plain', buffer: Buffer.from('It works.') })
    await p.getByRole('button', { name: 'Upload' }).click()
    assert.match(await p.locator('[role=status]').innerText(), /^Uploaded\./)
    await p.getByRole('link', { name: 'without script.txt' }).click()
    assert.equal(await p.locator('pre').innerText(), 'It works.')
    await c.clearCookies()
    for (const to of ['/', '/sign-in', '/sign-up', '/setup']) {
      assert.equal((await p.goto(to)).status(), 200, to)
      assert.equal(await p.locator('h1').isVisible(), true, to)
    }
  })
})

const garden = `The beds lie in the **sun** from noon on, see [Peas](cairn:block/PEAS) and [how to mulch](https://example.org/mulch).

## To do

- [x] dig the beds
- [ ] sow peas
- [ ] beans, once it is warm
- Plan: \u05e9\u05dc\u05d5\u05dd 123 - done

\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 (v2.1)!

> Water early, before the sun is on the leaves.

> [!warning] Frost
> Not before the ice saints.

| Bed | Sown | Rows |
| --- | --- | ---: |
| East | peas | 4 |
| West | beans | 2 |

\`\`\`text
north
  east   west
\`\`\`
`

test('documents', async (t) => {
  const server = await serve(t)
  const ana = await owner(server)
  const hermes = await letIn(t, ana, await agent(t, server), { heaps: ['Personal', 'Work'], write: true, stay: true })
  const told = async (tool, args) => {
    const { body } = await hermes.call(tool, args)
    assert.equal(body.result?.isError ?? true, false, JSON.stringify(body))
    return body.result.structuredContent
  }
  const signedIn = await ana.context(t)
  await sweep(t, signedIn, [['docs-empty', '/docs'], ['trash-empty', '/docs/trash']])

  const outdoors = await ana.ask('create_block', { type: 'tag', title: 'Outdoors', content: 'What grows.' })
  const peas = await ana.ask('create_block', { title: 'Peas', tags: [outdoors.id], content: 'They climb.' })
  const block = await ana.ask('create_block', { title: 'Garden plan', tags: [outdoors.id], content: garden.replace('PEAS', peas.id) })
  await ana.ask('set_property', { block_id: block.id, key: 'status', value: 'open' })
  await ana.ask('set_property', { block_id: block.id, key: 'sown', value: '2026-04-12', type: 'date' })
  await ana.ask('pin_block', { block_id: block.id })
  await ana.ask('create_block', { title: 'Reading', type: 'collection', heap: 'Work' })
  const gone = await ana.ask('create_block', { title: 'Old list' })
  await ana.ask('delete_block', { block_id: gone.id })
  const large = await ana.ask('create_block', { title: 'Log', content: Array.from({ length: 3100 }, (_, i) => `- entry ${i}`).join('\n') })
  const read = await told('get_document', { block_id: block.id, view: 'edit' })
  const node = (text) => read.nodes.find((n) => n.text?.startsWith(text) || JSON.stringify(n.content ?? '').includes(text)).node_id
  await told('patch_document', { block_id: block.id, base_hash: read.hash, operations: [
    { op: 'replace_text', node_id: node('sow peas'), find: 'sow peas', replace: 'sow peas along the fence' },
    { op: 'insert_after', node_id: node('Water early'), markdown: 'Mulch in May.' }] })

  const at = `/blocks/${block.id}`
  await sweep(t, signedIn, [
    ['docs', '/docs'],
    ['docs-found', '/docs?q=peas'],
    ['docs-none', '/docs?q=zebra'],
    ['new-note', '/docs/new'],
    ['trash', '/docs/trash'],
    ['block', at],
    ['block-authors', `${at}?authors=1`],
    ['block-old', `${at}?version=1`],
    ['block-part', `/blocks/${large.id}?part=5`],
    ['block-trashed', `/blocks/${gone.id}`],
    ['block-purge', `/blocks/${gone.id}/purge`],
    ['tag', `/blocks/${outdoors.id}`],
    ['block-property-error', at, async (p) => {
      await p.getByText('Set a property').click()
      await p.getByLabel('Name', { exact: true }).fill('due')
      await p.getByLabel('Value').fill('soon')
      await p.getByLabel('Kind').selectOption('date')
      await p.getByRole('button', { name: 'Set', exact: true }).click()
      await p.locator('.errors').waitFor()
    }],
    ['block-edit', `${at}/edit`],
    ['block-history', `${at}/history`],
    ['block-changes', `${at}/changes?from=1&to=2`],
    ['block-conflict', `${at}/edit`, async (p) => {
      const now = await told('get_document', { block_id: block.id, view: 'edit' })
      await told('patch_document', { block_id: block.id, base_hash: now.hash, operations: [
        { op: 'replace_text', node_id: node('The beds lie'), find: 'noon', replace: 'ten' }, { op: 'replace_text', node_id: node('dig the beds'), find: 'dig', replace: 'turn' }] })
      const text = p.getByLabel('Text')
      await text.fill((await text.inputValue()).replace('from noon on', 'until noon'))
      await p.getByRole('button', { name: 'Save' }).click()
      await p.getByText('Not saved yet.').waitFor()
    }],
  ])
})

test('with nothing yet, and what ends', async (t) => {
  const server = await serve(t)
  const ana = await owner(server)
  const eve = await another(server, ana, 'Eve')
  const carla = await new Person(server, 'Carla').join('sign-up')
  await sweep(t, await carla.context(t), [['waiting', '/agents']])
  await sweep(t, await eve.context(t), [['agents-empty', '/agents'], ['tokens-empty', '/tokens'], ['heaps-empty', '/heaps'], ['files-empty', '/files'], ['settings-new', '/settings']])

  const anon = await context(t, server)
  await sweep(t, anon, [
    ['sign-in', '/sign-in'],
    ['sign-in-error', '/sign-in', async (p) => {
      await p.getByLabel('Twelve words').fill('zebra zoo')
      await p.getByRole('button', { name: 'Sign in', exact: true }).click()
      await p.locator('[data-problem]').filter({ hasText: /./ }).waitFor()
    }],
    ['bad-request', '/oauth/authorize?client_id=nobody&response_type=code'],
  ])
  const a = await agent(t, server)
  const c = await context(t, server, { hosts: [a.host] })
  const page = await c.newPage()
  const address = a.address()
  await page.goto(address)
  await signInHere(page, ana)
  await page.getByRole('checkbox', { name: 'Personal', exact: true }).check()
  await page.getByRole('button', { name: 'Connect, read only' }).click()
  const { code } = await a.answer()
  await page.waitForURL(new RegExp(a.host))
  await page.goto(address)
  await check(t, page, 'consent-end')
  await a.redeem(code)
  await page.goto(address)
  await check(t, page, 'consent-done')
  assert.deepEqual(c.trouble, [])
})
