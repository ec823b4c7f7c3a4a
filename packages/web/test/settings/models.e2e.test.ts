/** Endpoints of models, as administrators add them, in a real browser. */
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, usePages, oneLook } from '../fixture/pages.ts'

const { service, signedIn, url } = usePages()

test.each(
  oneLook('models', [
    ['models-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['models-phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)('the first model is found, tested, saved, changed and removed, %s', async (name, look) => {
  const page = await signedIn(look)
  await page.getByRole('link', { name: 'Add a model' }).click()
  await page.getByRole('heading', { name: 'Models', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  const form = page.getByRole('form', { name: 'New endpoint' })
  await form.getByLabel('Provider').selectOption('Ollama')
  expect(await form.getByLabel('Address').inputValue()).toBe('http://127.0.0.1:11434/v1')
  await form.getByLabel('API key', { exact: true }).fill('sk-secret')
  const listed = { step: 'list' as const, ok: true, message: '2 found.', tookMs: 4 }
  service.endpoints.tried = { models: ['qwen3', 'gemma4'], steps: [listed] }
  await form.getByRole('button', { name: 'Fetch models' }).click()
  await form.getByText('2 found.').waitFor()
  expect(await form.locator('datalist option').count()).toBe(2)
  await form.getByLabel('Model', { exact: true }).fill('qwen3')
  service.endpoints.tried.steps.push(
    { step: 'stream', ok: false, message: 'Chat Completions doesn’t work. No.', tookMs: 900 },
    { step: 'stream', ok: true, message: 'Responses works.', tookMs: 950 },
    { step: 'tool', ok: true, message: 'Works.', tookMs: 951 },
  )
  await form.getByText('Label, context, images, prices, API').click()
  expect(await form.getByLabel('API', { exact: true }).inputValue()).toBe('')
  await form.getByLabel('Doesn’t support streaming').check()
  service.endpoints.tried.wire = 'responses'
  await form.getByRole('button', { name: 'Test it' }).click()
  await form.getByText('Responses works.').waitFor()
  expect(service.endpoints.asked.at(-1)).toMatchObject({ model: 'qwen3', streaming: false })
  // The API that the test found is saved with the model.
  expect(await form.getByLabel('API', { exact: true }).inputValue()).toBe('responses')
  await form.getByLabel('Context window').fill('32000')
  await form.getByLabel('Input price', { exact: true }).fill('0.5')
  await form.getByLabel('Output price').fill('2')
  await form.getByLabel('Cached input price').fill('0.05')
  await form.getByLabel('Cache write price').fill('0.6')
  expect(await lookAt(page, name)).toEqual([])
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Ollama is used from the next message.').waitFor()
  const list = page.getByRole('list', { name: 'Endpoints', exact: true })
  await list.getByText('Default').waitFor()
  await list.getByText('Responses · $0.5 in, $2 out').waitFor()
  expect(service.endpoints.asked.at(-1)).toEqual({
    name: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    models: [
      {
        name: 'qwen3',
        contextWindow: 32_000,
        wire: 'responses',
        streaming: false,
        price: { input: 0.5, output: 2, cached: 0.05, cacheWrite: 0.6 },
      },
    ],
    revision: 0,
    apiKey: 'sk-secret',
  })

  await list.getByRole('button', { name: 'Change Ollama' }).click()
  const change = page.getByRole('form', { name: 'Change Ollama' })
  await change.getByLabel('Name', { exact: true }).fill('Ours')
  // An API that was found is that of one address.
  await change.getByLabel('Address').fill('http://127.0.0.1:11435/v1')
  await change.getByLabel('Address').fill('http://127.0.0.1:11434/v1')
  await change.getByText('Label, context, images, prices, API').click()
  const api = change.getByLabel('API', { exact: true })
  expect(await api.inputValue()).toBe('')
  // It is that of one model as well, and can be left to Sandlot again.
  await api.selectOption('Responses')
  await change.getByLabel('Model', { exact: true }).fill('qwen3.5')
  expect(await api.inputValue()).toBe('')
  await api.selectOption('Responses')
  await api.selectOption('Automatic')
  await change.getByLabel('Doesn’t support streaming').uncheck()
  await change.getByLabel('Cache write price').fill('')
  await change.getByRole('button', { name: 'Save' }).click()
  await list.getByText('Ours').waitFor()
  expect(service.endpoints.asked.at(-1)?.['models']).toMatchObject([
    { name: 'qwen3.5', wire: null, streaming: true, price: { input: 0.5, cacheWrite: null } },
  ])
  // The key that is stored stays: it is not sent.
  expect(service.endpoints.asked.at(-1)).not.toHaveProperty('apiKey')
  expect(await lookAt(page, `${name}-list`)).toEqual([])
  await list.getByRole('button', { name: 'Remove Ours' }).click()
  await list.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('The scripted demo answers').waitFor()
})

test('what the environment configures is shown and not edited', async () => {
  service.endpoints.view = {
    configured: [
      {
        name: 'gpt-5',
        wire: 'responses',
        address: 'https://api.openai.com/v1',
        price: { input: 1.25, output: 10, cached: 0.125 },
      },
    ],
    endpoints: [],
    asking: {},
    knownPrices: {},
    main: { name: 'gpt-5', demo: false },
  }
  const page = await signedIn()
  await page.goto(`${url()}/settings/models`)
  const configured = page.getByRole('list', { name: 'Configured models' })
  await configured.getByText('gpt-5').waitFor()
  expect(await configured.innerText()).toContain('Responses · $1.25 in, $10 out')
  expect(await configured.getByRole('button').count()).toBe(0)
})
