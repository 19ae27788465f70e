// A person edits a document in the browser while an agent patches it by MCP: what doesn't overlap is joined, what does is shown
// side by side, and nothing of either is lost.
import assert from 'node:assert/strict'
import test from 'node:test'
import { agent, another, letIn, owner, serve } from './browser.mjs'

const text = `# Garden

The beds lie in the sun.

- peas
- beans

Water early.
`

/** A person with a document open, and an agent that may change it. */
async function two(t, options) {
  const server = await serve(t, options)
  const ana = await owner(server)
  const hermes = await letIn(t, ana, await agent(t, server), { write: true, stay: true })
  const c = await ana.context(t)
  const page = await c.newPage()
  const told = async (tool, args) => {
    const { body } = await hermes.call(tool, args)
    assert.equal(body.result?.isError ?? true, false, JSON.stringify(body))
    return body.result.structuredContent
  }
  await page.goto('/')
  assert.equal(new URL(page.url()).pathname, '/docs')
  await page.getByRole('link', { name: 'Write the first note' }).click()
  await page.getByLabel('Title').fill('Plan')
  await page.getByLabel('Text').fill(text)
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('Created.').waitFor()
  const id = new URL(page.url()).pathname.split('/')[2]
  /** The agent replaces text of the blocks that have it. */
  const patch = async (...pairs) => {
    const read = await told('get_document', { block_id: id, view: 'edit' })
    const operations = pairs.map(([find, replace]) => ({ op: 'replace_text', node_id: read.nodes.find((n) => n.text?.includes(find)).node_id, find, replace }))
    return told('patch_document', { block_id: id, base_hash: read.hash, operations })
  }
  const markdown = async () => (await ana.ask('get_markdown', { block_id: id })).markdown
  return { c, page, id, told, patch, markdown, ana }
}

for (const postgres of [false, true]) {
  test(`a person edits while an agent patches, on ${postgres ? 'PostgreSQL' : 'SQLite'}`, async (t) => {
    const { c, page, id, patch, markdown, ana } = await two(t, { postgres })
    const field = page.getByLabel(/^(Text|Result)$/)
    const edit = async (from, to) => {
      await page.goto(`/blocks/${id}/edit`)
      await field.fill((await field.inputValue()).replace(from, to))
    }

    await t.test('in different places: joined', async () => {
      await edit('in the sun', 'in shade')
      await patch(['peas', 'leeks'])
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Saved, together with what others changed').waitFor()
      assert.equal(await markdown(), text.replace('in the sun', 'in shade').replace('peas', 'leeks'))
      await page.getByRole('link', { name: 'Who wrote what' }).click()
      const by = (words) => page.locator('.by', { hasText: words }).locator('.by-whom').textContent()
      assert.equal(await by('leeks'), 'agent · Hermes')
      assert.equal(await by('The beds lie in shade.'), 'You')
    })

    await t.test('in the same block: shown side by side', async () => {
      await edit('in shade', 'in half shade')
      await patch(['lie', 'are'], ['beans', 'chard'])
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Not saved yet.').waitFor()
      assert.equal(await page.evaluate(() => document.activeElement.id), 'save-errors')
      const card = page.locator('.card', { hasText: 'Yours' })
      assert.equal(await card.count(), 1)
      assert.match(await card.innerText(), /Yours\s+The beds lie in half shade\.\s+Theirs\s+agent ·\s+Hermes[^]*The beds are in shade\./)
      assert.match(await field.inputValue(), /The beds lie in half shade\.\n\nThe beds are in shade\.\n\n- leeks\n- chard\n/)
      assert.doesNotMatch(await markdown(), /half/, 'nothing is written before the person has gone over it')

      // It moves once more before the result is saved: elsewhere, so the result is joined with that too.
      await patch(['Water early', 'Water late'])
      await field.fill((await field.inputValue()).replace('The beds lie in half shade.\n\nThe beds are in shade.', 'The beds are in half shade.'))
      await page.getByRole('button', { name: 'Save the result' }).click()
      await page.getByText('Saved, together').waitFor()
      assert.equal(await markdown(), '# Garden\n\nThe beds are in half shade.\n\n- leeks\n- chard\n\nWater late.\n')
    })

    await t.test('who changed what, and taking it back', async () => {
      await page.getByRole('link', { name: 'History' }).click()
      const rows = page.locator('ol.rows > li')
      assert.match(await rows.nth(1).innerText(), /agent ·\s+Hermes\s+for You\s+version 5/)
      await page.getByRole('link', { name: 'By agents' }).click()
      assert.deepEqual(await rows.evaluateAll((all) => all.map((r) => /Hermes/.test(r.textContent))), [true, true, true])
      await rows.nth(0).getByRole('link', { name: /What changed/ }).click()
      assert.equal(await page.locator('.diff del').innerText(), 'early')
      assert.equal(await page.locator('.diff ins').innerText(), 'late')
      await page.goBack()
      await rows.nth(0).getByRole('button', { name: /Take back/ }).click()
      await page.getByText('Taken back.').waitFor()
      assert.equal(await markdown(), '# Garden\n\nThe beds are in half shade.\n\n- leeks\n- chard\n\nWater early.\n', 'what came after it stays')
      // A change that a later one went over is left alone, and the page says so.
      await page.getByRole('link', { name: 'By agents' }).click()
      await rows.nth(1).getByRole('button', { name: /Take back/ }).click()
      await page.locator('.errors').waitFor()
      assert.match(await page.locator('.errors').innerText(), /left as it is/)
      await page.goto(`/blocks/${id}?version=1`)
      await page.getByRole('button', { name: 'Restore this version' }).click()
      await page.getByText('Restored.').waitFor()
      assert.equal(await markdown(), text)
    })

    await t.test('what somebody has no right to looks like what is not there', async () => {
      const eve = await another(ana.server, ana, 'Eve')
      const hers = await eve.context(t)
      const p = await hers.newPage()
      await p.goto('/docs')
      assert.equal(await p.getByText('No documents yet').count(), 1)
      const missing = '01a22cf2-514b-7902-a8e0-590a4f1a92cf'
      for (const rest of ['', '?version=1', '?authors=1', '/edit', '/history', '/changes?from=1&to=2', '/purge']) {
        const seen = []
        for (const some of [id, missing]) {
          assert.equal((await p.goto(`/blocks/${some}${rest}`)).status(), 404, rest)
          seen.push((await p.content()).replaceAll(some, 'ID'))
        }
        assert.equal(seen[0], seen[1])
      }
      assert.equal((await p.goto('/blocks/nothing')).status(), 404)
    })

    await t.test('tags, properties, trash', async () => {
      await page.goto(`/blocks/${id}`)
      await page.getByLabel('Add a tag').fill('Outdoors')
      await page.getByRole('button', { name: 'Add tag' }).click()
      await page.getByRole('link', { name: 'Outdoors' }).click()
      assert.deepEqual(await page.locator('.below .row-title').allInnerTexts(), ['Plan'])
      await page.goto(`/blocks/${id}`)
      await page.getByText('Set a property').click()
      await page.getByLabel('Name', { exact: true }).fill('rows')
      await page.getByLabel('Value').fill('4')
      await page.getByRole('button', { name: 'Set', exact: true }).click()
      assert.match(await page.locator('.properties').innerText(), /rows\s+4/)
      await page.getByRole('button', { name: 'Pin' }).click()
      await page.getByText('Pinned.', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Move to the trash' }).click()
      await page.getByText('Moved to the trash').waitFor()
      await page.getByRole('link', { name: 'Trash' }).click()
      await page.getByRole('button', { name: 'Restore Plan' }).click()
      await page.getByText('Brought back.').waitFor()
      await page.goto(`/blocks/${id}`)
      await page.getByRole('button', { name: 'Move to the trash' }).click()
      await page.getByRole('link', { name: 'Trash' }).click()
      await page.getByRole('link', { name: 'Delete for good Plan' }).click()
      await page.getByLabel('Type its title').fill('Plan')
      await page.getByRole('button', { name: 'Delete for good' }).click()
      await page.getByText('Deleted for good.').waitFor()
      assert.equal((await page.goto(`/blocks/${id}`)).status(), 404)
    })
    assert.deepEqual(c.trouble, [])
  })
}

test('without script a conflict is gone over too', async (t) => {
  const { page, id, patch, markdown, ana } = await two(t)
  const [name, value] = ana.cookie.split('=')
  const c = await page.context().browser().newContext({ baseURL: ana.server.url, javaScriptEnabled: false })
  t.after(() => c.close())
  await c.addCookies([{ name, value, url: ana.server.url }])
  const plain = await c.newPage()
  await plain.goto(`/blocks/${id}/edit`)
  const field = plain.getByLabel(/^(Text|Result)$/)
  await field.fill((await field.inputValue()).replace('Water early.', 'Water at dawn.'))
  await patch(['Water early', 'Water at dusk'])
  await plain.getByRole('button', { name: 'Save' }).click()
  await plain.getByText('Not saved yet.').waitFor()
  await plain.getByRole('button', { name: 'Save the result' }).click()
  await plain.getByText('Saved.').waitFor()
  assert.match(await markdown(), /Water at dawn\.\n\nWater at dusk\.\n$/, 'saved without a look, it has both')
})
