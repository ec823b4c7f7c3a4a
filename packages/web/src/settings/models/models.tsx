/** The models of this Sandlot: those of its configuration, and endpoints that are added here. */
import {
  API_NAMES,
  type EndpointView,
  type ModelPrice,
  type ModelsView,
  type WireName,
  joinedModelsView,
} from '@sandlot/shared/account/models-api'
import { Pencil, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { useChat } from '../../state/chat-context.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { Part } from '../part.tsx'
import { EndpointForm } from './endpoint-form.tsx'

export function ModelsSection() {
  const { renewMe } = useChat()
  const {
    data: view,
    problem,
    busy,
    change,
    show,
  } = useResource('models', async (signal) => joinedModelsView.parse(await call('listModels', { signal })))
  const changed = (now: ModelsView) => {
    show(now)
    // The composer names the model.
    void renewMe()
  }
  if (view === null)
    return problem === null ? (
      <p role="status" className="flex items-center gap-2 text-sm text-muted">
        <Spinner /> Loading…
      </p>
    ) : (
      <Alert>{problem}</Alert>
    )
  return (
    <div className="flex flex-col gap-10">
      {problem !== null && <Alert>{problem}</Alert>}
      <EndpointsPart view={view} busy={busy} change={change} onChanged={changed} />
      <PricesPart />
      {view.configured.length > 0 && <ConfiguredPart view={view} />}
    </div>
  )
}

function EndpointsPart(props: {
  view: ModelsView
  busy: boolean
  change: (work: () => Promise<void>) => Promise<void>
  onChanged: (now: ModelsView) => void
}) {
  const { view, busy, change } = props
  /** An endpoint, or a new one. Null: no form is open. */
  const [edited, setEdited] = useState<EndpointView | 'new' | null>(null)
  const [doomed, setDoomed] = useState<string | null>(null)
  const changed = (now: ModelsView) => {
    props.onChanged(now)
    setEdited(null)
    setDoomed(null)
  }
  return (
    <Part
      title="Endpoints"
      text="Any OpenAI- or Anthropic-compatible endpoint. Keys are stored encrypted and never shown again."
    >
      {view.main.demo && <DemoAnswers />}
      {view.endpoints.length > 0 && (
        <ul aria-label="Endpoints" className="divide-y divide-line rounded-lg border border-line">
          {view.endpoints.map((endpoint) =>
            edited !== null && edited !== 'new' && edited.id === endpoint.id ? (
              <li key={endpoint.id} className="p-3">
                <EndpointForm endpoint={edited} onSaved={changed} onLeave={() => setEdited(null)} />
              </li>
            ) : (
              <EndpointLine
                key={endpoint.id}
                endpoint={endpoint}
                main={view.main.name}
                known={view.knownPrices}
                doomed={doomed === endpoint.id}
                busy={busy}
                onEdit={() => setEdited(endpoint)}
                onDoom={(on) => setDoomed(on ? endpoint.id : null)}
                onRemove={() =>
                  void change(async () => {
                    changed(
                      joinedModelsView.parse(await call('removeEndpoint', { params: { id: endpoint.id } })),
                    )
                    showToast(`${endpoint.name} removed.`)
                  })
                }
              />
            ),
          )}
        </ul>
      )}
      <NewEndpoint
        isOpen={edited === 'new'}
        isFirst={view.main.demo}
        onOpen={() => setEdited('new')}
        onSaved={changed}
        onLeave={() => setEdited(null)}
      />
    </Part>
  )
}

function PricesPart() {
  return (
    <Part
      title="Prices and people"
      text="Prices are in US dollars per million tokens and apply from the next message. Past costs don’t change. Without a price, the cost is unknown."
    >
      <p className="text-sm text-muted">
        Everyone can use all models, unless a{' '}
        <Link
          href="/settings/teams"
          className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
        >
          team
        </Link>{' '}
        or a{' '}
        <Link
          href="/settings/people"
          className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
        >
          person
        </Link>{' '}
        has its own list.
      </p>
    </Part>
  )
}

function ConfiguredPart({ view }: { view: ModelsView }) {
  return (
    <Part
      title="From the configuration"
      text="Set in the environment or the configuration file. Listed first."
    >
      <ul aria-label="Configured models" className="divide-y divide-line rounded-lg border border-line">
        {view.configured.map(({ name, address, price, wire }) => (
          <li key={name} className="flex min-h-11 flex-wrap items-center gap-x-3 px-3 py-2 text-sm">
            <span className="font-medium [overflow-wrap:anywhere]">{name}</span>
            <span className="min-w-0 flex-1 text-xs text-muted [overflow-wrap:anywhere]">
              {[address, ...apiWords(wire), priceWords(price)].join(' · ')}
            </span>
            {name === view.main.name && <MainMark />}
          </li>
        ))}
      </ul>
    </Part>
  )
}

function DemoAnswers() {
  return <p className="text-sm text-muted">No model yet. The scripted demo answers until you add one.</p>
}

/** `isFirst`: only the demo answers so far. */
function NewEndpoint(props: {
  isOpen: boolean
  isFirst: boolean
  onOpen: () => void
  onSaved: (now: ModelsView) => void
  onLeave: () => void
}) {
  return props.isOpen ? (
    <div className="rounded-lg border border-line p-3">
      <EndpointForm endpoint={null} onSaved={props.onSaved} onLeave={props.onLeave} />
    </div>
  ) : (
    <div>
      <Button variant={props.isFirst ? 'primary' : 'secondary'} onClick={props.onOpen}>
        <Plus className="size-4" aria-hidden /> Add an endpoint
      </Button>
    </div>
  )
}

/** The model of chats that have chosen none. */
function MainMark() {
  return <span className="rounded-full bg-well-wash px-2 py-0.5 text-xs font-medium text-well">Default</span>
}

/** Dollars for a million tokens. */
function priceWords(price: ModelPrice | undefined): string {
  return price === undefined ? 'price unknown' : `$${price.input} in, $${price.output} out`
}

function apiWords(wire: WireName | undefined): string[] {
  return wire === undefined ? [] : [API_NAMES[wire]]
}

function EndpointLine(props: {
  endpoint: EndpointView
  main: string
  known: ModelsView['knownPrices']
  doomed: boolean
  busy: boolean
  onEdit: () => void
  onDoom: (on: boolean) => void
  onRemove: () => void
}) {
  const { name, baseUrl, models, hasKey } = props.endpoint
  return (
    <li className="flex flex-col gap-2 px-3 py-2.5 text-sm">
      <div className="flex items-center gap-2">
        <div className="min-w-0 flex-1">
          <p className="font-medium [overflow-wrap:anywhere]">{name}</p>
          <p className="text-xs text-muted [overflow-wrap:anywhere]">
            {baseUrl} · {hasKey ? 'with a key' : 'without a key'}
          </p>
        </div>
        <IconButton label={`Change ${name}`} onClick={props.onEdit}>
          <Pencil aria-hidden />
        </IconButton>
        <IconButton label={`Remove ${name}`} onClick={() => props.onDoom(true)}>
          <Trash2 aria-hidden />
        </IconButton>
      </div>
      <ul aria-label={`Models of ${name}`} className="flex flex-wrap gap-1.5">
        {models.map(({ name: model, label = model, price = props.known[label], wire }) => (
          <li
            key={label}
            className="flex items-center gap-1.5 rounded-md border border-line bg-sunken px-2 py-0.5 text-xs [overflow-wrap:anywhere]"
          >
            {label}
            <span className="text-muted">{[...apiWords(wire), priceWords(price)].join(' · ')}</span>
            {label === props.main && <MainMark />}
          </li>
        ))}
      </ul>
      {props.doomed && (
        <div role="group" aria-label={`Remove ${name}?`} className="flex flex-wrap items-center gap-2">
          <p role="alert" className="min-w-0 flex-1 basis-60 text-muted">
            Its key is deleted. Chats that use its models switch to the default.
          </p>
          <Button onClick={() => props.onDoom(false)}>Cancel</Button>
          <Button variant="danger" disabled={props.busy} onClick={props.onRemove}>
            Remove
          </Button>
        </div>
      )}
    </li>
  )
}
