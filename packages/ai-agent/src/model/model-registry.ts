/**
 * The models of this deployment: those of its configuration, then those of the endpoints that
 * administrators have added, which change while the agent runs. The demo answers where there are
 * none.
 */
import { createHmac } from 'node:crypto'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { type NewAudit, SANDLOT } from '@sandlot/shared/admin/audit'
import {
  type Endpoint,
  type EndpointRequest,
  type ModelPrice,
  type ModelsView,
  type WireName,
  shownName,
  splitAsking,
  wireName,
} from '@sandlot/shared/account/models-api'
import type { EndpointRecord, ModelEndpointRows } from '@sandlot/storage/people/model-endpoints'
import { createDemoModel } from './demo/demo.ts'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import type { Model, Price } from './model.ts'
import { createChoosingModel } from './choosing-model.ts'
import { priceAt, priceOf } from './prices.ts'
import type { ModelSettings, ModelsSettings } from './settings.ts'
import type { SilenceLimits } from './sse.ts'
import { shownUrl } from './transport.ts'
import { wireOfAddress } from './wires/choice.ts'

/** The owner of the keys: no person has this id. */
const KEY_OWNER = 'deployment:models'
const MOST_ENDPOINTS = 50
const MOST_MODELS = 500

interface ModelRegistryParts {
  rows: ModelEndpointRows
  secrets: {
    get(userId: string, name: string): Promise<string | undefined>
    set(userId: string, name: string, value: string | undefined): Promise<void>
    remove(userId: string, name: string): Promise<boolean>
  }
  /** Models of the environment and the configuration file. */
  configured: ModelsSettings | undefined
  /** Limits of models of added endpoints. */
  silence: SilenceLimits
  /** The deployment's: without it an origin says nothing of the API key in it. */
  originKey: Uint8Array
  /** The operator's own, by the name of the model. */
  prices: Record<string, Price>
  /** True if any limit is in dollars. */
  limitsCost: () => boolean
  now: () => number
  log: { warn(fields: object, message: string): void }
}

type EndpointChange = Omit<EndpointRequest, 'apiKey' | 'revision'>

interface Added extends EndpointRecord {
  settings: readonly ModelSettings[]
  models: readonly Model[]
  hasKey: boolean
}

export class ModelRegistry {
  readonly #parts: ModelRegistryParts
  readonly #configured: readonly Model[]
  readonly fallbacks: readonly Model[]
  readonly #demo = createDemoModel()
  #added: readonly Added[] = []
  readonly #writes = new SerialQueue()

  /** A key that cannot be opened leaves its endpoint without one, and the log says so. */
  static async open(parts: ModelRegistryParts): Promise<ModelRegistry> {
    const registry = new ModelRegistry(parts)
    await registry.#read()
    return registry
  }

  private constructor(parts: ModelRegistryParts) {
    this.#parts = parts
    const { configured } = parts
    const made = new Map<ModelSettings, Model>()
    // Facts learned about an endpoint are shared by models at the same one.
    const create = (settings: ModelSettings): Model => {
      const model =
        made.get(settings) ??
        createModel(settings, parts, (from, to) => this.#logSwitch(settings.name, from, to))
      made.set(settings, model)
      return model
    }
    this.#configured = configured === undefined ? [] : [configured.main, ...configured.choices].map(create)
    this.fallbacks = (configured?.fallbacks ?? []).map(create)
  }

  get model(): Model {
    return this.#all()[0] ?? this.#demo
  }

  get choices(): readonly Model[] {
    return this.#all().slice(1)
  }

  get names(): string[] {
    return [this.model, ...this.choices].map(({ name }) => name)
  }

  /** Settings of each of them; none for the demo. */
  get settings(): ModelSettings[] {
    const { configured } = this.#parts
    const own =
      configured === undefined ? [] : [configured.main, ...configured.choices, ...configured.fallbacks]
    return [...own, ...this.#added.flatMap(({ settings }) => settings)]
  }

  /** The problem of a limit in dollars: a model without a known price. */
  unpriced(): string | undefined {
    const model = this.settings.find(({ price }) => price === undefined)
    if (model === undefined) return undefined
    const onPage = this.#added.some(({ settings }) => settings.includes(model))
    const place = onPage ? 'under Settings → Models' : 'in the configuration file, under “prices”'
    return `A limit in dollars needs the price of every model, and ${model.name} has none. Add it ${place}, or limit tokens instead.`
  }

  get view(): ModelsView {
    const { configured, now } = this.#parts
    const own = configured === undefined ? [] : [configured.main, ...configured.choices]
    const shownPrice = (price: Price): ModelPrice => {
      const { input, output, cached } = priceAt(price, now())
      return { input, output, cached }
    }
    return {
      configured: own.map(({ label, name, baseUrl, price }, place) => ({
        name: label ?? name,
        address: shownUrl(new URL(baseUrl)),
        price: price && shownPrice(price),
        wire: wireName.optional().parse(this.#configured[place]?.wire),
      })),
      endpoints: this.#added.map(({ id, revision, endpoint, hasKey }) => ({
        ...splitAsking(endpoint).plain,
        id,
        revision,
        hasKey,
      })),
      asking: Object.fromEntries(this.#added.map(({ id, endpoint }) => [id, splitAsking(endpoint).asking])),
      knownPrices: Object.fromEntries(
        this.#added.flatMap(({ settings }) =>
          settings.flatMap(({ name, label = name, price }) =>
            price === undefined ? [] : [[label, shownPrice(price)] as const],
          ),
        ),
      ),
      main: { name: this.model.name, demo: this.model.demo },
    }
  }

  /** The key of an endpoint that is there; undefined: it has none. */
  keyOf(id: string): Promise<string | undefined> {
    return this.#parts.secrets.get(KEY_OWNER, id)
  }

  /**
   * Adds an endpoint (`id` absent, `revision` 0) or changes one. `apiKey` undefined: the one that
   * is there stays; null: none. From the next prompt on. Throws `conflict` where another
   * administrator was faster or a model of this name is there already, and `bad_request`.
   */
  put(
    change: EndpointChange,
    {
      id,
      revision,
      apiKey,
    }: { id?: string | undefined; revision: number; apiKey?: string | null | undefined },
    audit?: (before: Endpoint | undefined) => NewAudit,
  ): Promise<void> {
    return this.#writes.run(async () => {
      const { rows, secrets, now } = this.#parts
      const before = this.#added.find((one) => one.id === id)
      if (id !== undefined && before === undefined)
        throw new SandlotError('not_found', 'This endpoint no longer exists.')
      const endpoint = withStored(change, before?.endpoint)
      this.#check(endpoint, before)
      const key = id ?? `e_${randomText(16)}`
      // A key is for the address that it was entered for, and goes nowhere else.
      const moved =
        before !== undefined && before.endpoint.baseUrl !== endpoint.baseUrl && apiKey === undefined
      if (moved && before.hasKey)
        throw new SandlotError('bad_request', 'The address has changed. Enter the key again.')
      const line = audit?.(before?.endpoint)
      const row = { id: key, revision: revision + 1, endpoint }
      if (!(await rows.put(row, now(), line))) {
        await this.#read()
        throw new SandlotError('conflict', 'This endpoint has changed in the meantime. Load it again.')
      }
      if (apiKey !== undefined) await secrets.set(KEY_OWNER, key, apiKey ?? undefined)
      await this.#read()
    })
  }

  /** Silent where there is none. Prompts that run with its models go on with them. */
  remove(id: string, audit?: (before: Endpoint | undefined) => NewAudit): Promise<void> {
    return this.#writes.run(async () => {
      const { rows, secrets } = this.#parts
      await rows.remove(id, audit?.(this.#added.find((one) => one.id === id)?.endpoint))
      await secrets.remove(KEY_OWNER, id)
      await this.#read()
    })
  }

  /** Reads again what another process may have changed. Rejects when the store fails. */
  reload(): Promise<void> {
    return this.#writes.run(() => this.#read())
  }

  /** Stores the wire over which a model has answered, by its shown name, and audits the change. */
  #storeSwitch(id: string, name: string, from: WireName, to: WireName): Promise<void> {
    this.#logSwitch(name, from, to)
    return this.#writes
      .run(async () => {
        const row = this.#added.find((one) => one.id === id)
        const isStored = row?.endpoint.models.every((model) => shownName(model) !== name || model.wire === to)
        if (row === undefined || isStored === true) return
        const models = row.endpoint.models.map((model) =>
          shownName(model) === name ? { ...model, wire: to } : model,
        )
        const facts = (api: WireName) => ({ model: name, api })
        const line: NewAudit = {
          who: SANDLOT,
          what: 'endpoint_changed',
          whom: { id, name: row.endpoint.name },
          before: facts(from),
          after: facts(to),
        }
        const changed = { id, revision: row.revision + 1, endpoint: { ...row.endpoint, models } }
        await this.#parts.rows.put(changed, this.#parts.now(), line)
        await this.#read()
      })
      .catch((error: unknown) => {
        this.#parts.log.warn(
          { model: name, error: messageOf(error) },
          'the API of a model could not be stored',
        )
      })
  }

  #logSwitch(model: string, from: WireName, to: WireName): void {
    this.#parts.log.warn({ model, from, to }, 'a model answers over another API; it is used from now on')
  }

  #all(): readonly Model[] {
    return [...this.#configured, ...this.#added.flatMap(({ models }) => models)]
  }

  #check(endpoint: Endpoint, before: Added | undefined): void {
    const others = this.#added.filter((one) => one !== before)
    const unpriced = endpoint.models.find(
      ({ name, price }) => (price ?? priceOf(name, endpoint.baseUrl, this.#parts.prices)) === undefined,
    )
    if (unpriced !== undefined && this.#parts.limitsCost())
      throw new SandlotError(
        'bad_request',
        `A limit in dollars applies, so ${unpriced.name} needs prices for input and output.`,
      )
    if (before === undefined && others.length >= MOST_ENDPOINTS)
      throw new SandlotError('bad_request', `There can be ${MOST_ENDPOINTS} endpoints.`)
    const taken = new Set([
      ...[...this.#configured, ...this.fallbacks].map(({ name }) => name),
      ...others.flatMap(({ models }) => models.map(({ name }) => name)),
    ])
    if (taken.size + endpoint.models.length > MOST_MODELS)
      throw new SandlotError('bad_request', `There can be ${MOST_MODELS} models.`)
    for (const { name, label = name } of endpoint.models) {
      if (taken.has(label))
        throw new SandlotError(
          'conflict',
          `There is a model “${label}” already: give this one another label.`,
        )
      taken.add(label)
    }
  }

  async #read(): Promise<void> {
    const records = await this.#parts.rows.all()
    const before = this.#added
    this.#added = await Promise.all(
      records.map(async (record) => {
        const apiKey = await this.#keyAtStart(record)
        const settings = record.endpoint.models.map((model) =>
          settingsOf(record.endpoint, model, apiKey, this.#parts),
        )
        const same = before.find(
          (one) =>
            one.id === record.id &&
            one.revision === record.revision &&
            one.settings.every((model) => model.apiKey === apiKey),
        )
        // Facts learned about its endpoint stay.
        const store = (name: string) => (from: WireName, to: WireName) =>
          void this.#storeSwitch(record.id, name, from, to)
        const models =
          same?.models ?? settings.map((one) => createModel(one, this.#parts, store(shownName(one)), 'page'))
        return { ...record, settings, models, hasKey: apiKey !== '' }
      }),
    )
  }

  async #keyAtStart({ id, endpoint }: EndpointRecord): Promise<string> {
    try {
      return (await this.keyOf(id)) ?? ''
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'SealError') throw error
      this.#parts.log.warn(
        { endpoint: endpoint.name },
        'the key of a model endpoint cannot be opened; enter it again',
      )
      return ''
    }
  }
}

function settingsOf(
  { baseUrl }: Endpoint,
  { name, label, contextWindow, images, price, wire = 'chat', streaming }: Endpoint['models'][number],
  apiKey: string,
  { prices }: Pick<ModelRegistryParts, 'prices'>,
): ModelSettings {
  return {
    baseUrl,
    apiKey,
    name,
    label,
    contextWindow,
    wire,
    streaming,
    profile: images === undefined ? undefined : { images },
    price: price ?? priceOf(name, baseUrl, prices),
  }
}

function createModel(
  settings: ModelSettings,
  { silence, originKey }: Pick<ModelRegistryParts, 'silence' | 'originKey'>,
  switched: (from: WireName, to: WireName) => void,
  setIn?: SetIn,
): Model {
  const { name, ...about } = settings
  const origin = originOf(settings, originKey)
  return createChoosingModel({ ...about, model: name, silence, origin }, switched, setIn)
}

/**
 * See `Model`. Another address, key or family of models has another one; a snapshot of a model does
 * not.
 */
function originOf({ baseUrl, apiKey, name }: ModelSettings, key: Uint8Array): string {
  const family = name.replace(/-\d{4}-?\d\d-?\d\d$/, '')
  const told = JSON.stringify(['model origin', baseUrl, family, apiKey])
  return createHmac('sha256', key).update(told).digest('base64url').slice(0, 22)
}

/**
 * The endpoint with what `change` leaves out: that of `before` at the same address (rows of earlier
 * versions have no wire, which means Chat Completions), else the wire that suits the address.
 */
function withStored(change: EndpointChange, before: Endpoint | undefined): Endpoint {
  const suited = wireOfAddress(new URL(change.baseUrl))
  const known = before?.baseUrl === change.baseUrl ? before.models : []
  const models = change.models.map(({ wire, price, ...model }) => {
    const same = known.filter(({ name }) => name === model.name)
    const stored = same.find((one) => shownName(one) === shownName(model)) ?? same[0]
    const cacheWrite = price?.cacheWrite === undefined ? stored?.price?.cacheWrite : price.cacheWrite
    return {
      ...model,
      wire: wire === undefined && stored !== undefined ? stored.wire : (wire ?? suited),
      streaming: model.streaming ?? stored?.streaming,
      price: price && { ...price, cacheWrite: cacheWrite ?? undefined },
    }
  })
  return { ...change, models }
}
