/** An endpoint of models: where it is, its key, what it offers, and whether it works. */
import {
  API_NAMES,
  type EndpointTestResult,
  type EndpointView,
  type ModelsView,
  joinedModelsView,
  wireName,
} from '@sandlot/shared/account/models-api'
import { CircleAlert, CircleCheck, Plus, X } from 'lucide-react'
import { useId, useState } from 'react'
import { useSubmit } from '../../auth/use-submit.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { Choice, Field, type FieldProps, INPUT } from '../../ui/field.tsx'
import { PasswordField } from '../../ui/password-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { type ModelDraft, draftOf, emptyModel, modelOf, PRESETS, withoutApi } from './endpoint-draft.ts'

export function EndpointForm(props: {
  /** Null: a new one. */
  endpoint: EndpointView | null
  onSaved: (now: ModelsView) => void
  onLeave: () => void
}) {
  const { endpoint } = props
  const { draft, set, keeps, choosePreset, ...trial } = useEndpointDraft(endpoint)
  const { preset, name, baseUrl, models } = draft
  const firstModel = firstModelOf(draft)
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const body = wireOf(draft, endpoint, keeps)
    const answer = await (endpoint === null
      ? call('addEndpoint', { body })
      : call('changeEndpoint', { params: { id: endpoint.id }, body }))
    showToast(endpoint === null ? `${name.trim()} is used from the next message.` : 'Endpoint saved.')
    props.onSaved(joinedModelsView.parse(answer))
  })
  return (
    <form
      aria-label={endpoint === null ? 'New endpoint' : `Change ${endpoint.name}`}
      onSubmit={onSubmit}
      className="flex flex-col gap-4"
    >
      {problem !== null && <Alert>{problem}</Alert>}
      {endpoint === null && (
        <Choice
          label="Provider"
          value={preset}
          placeholder="Choose one"
          options={PRESETS.map(({ id, name: words }) => [id, words === '' ? 'Another one' : words])}
          onChange={choosePreset}
        />
      )}
      <AddressFields draft={draft} set={set} />
      <KeyField draft={draft} set={set} keeps={keeps} />
      <ModelsField
        models={models}
        offered={trial.result?.models ?? []}
        onChange={(next) => set({ models: next })}
      />
      {trial.problem !== null && <Alert>{trial.problem}</Alert>}
      {trial.result !== null && <Outcome result={trial.result} />}
      <div className="flex flex-wrap justify-end gap-2">
        <Button
          className="mr-auto"
          disabled={trial.testing || baseUrl.trim() === ''}
          onClick={() => void trial.test()}
        >
          {trial.testing && <Spinner />} {firstModel === '' ? 'Fetch models' : 'Test it'}
        </Button>
        <Button onClick={props.onLeave}>Cancel</Button>
        <Button type="submit" variant="primary" disabled={busy || firstModel === '' || name.trim() === ''}>
          {busy && <Spinner />} Save
        </Button>
      </div>
    </form>
  )
}

interface EndpointDraft {
  preset: string
  name: string
  baseUrl: string
  apiKey: string
  models: readonly ModelDraft[]
}

interface DraftProps {
  draft: EndpointDraft
  set: (change: Partial<EndpointDraft>) => void
}

const firstModelOf = ({ models }: EndpointDraft): string => models[0]?.name.trim() ?? ''

function wireOf(draft: EndpointDraft, endpoint: EndpointView | null, keeps: boolean) {
  const key = draft.apiKey.trim()
  return {
    name: draft.name.trim(),
    baseUrl: draft.baseUrl.trim(),
    models: draft.models.filter((model) => model.name.trim() !== '').map(modelOf),
    revision: endpoint?.revision ?? 0,
    apiKey: key === '' ? (keeps ? undefined : null) : key,
  }
}

/** `keeps`: the stored key stays. `result`: of the last test. */
function useEndpointDraft(endpoint: EndpointView | null) {
  const [draft, setDraft] = useState<EndpointDraft>(() => ({
    preset: endpoint === null ? '' : 'other',
    name: endpoint?.name ?? '',
    baseUrl: endpoint?.baseUrl ?? '',
    apiKey: '',
    models: endpoint === null ? [emptyModel()] : endpoint.models.map(draftOf),
  }))
  const set = (change: Partial<EndpointDraft>) =>
    setDraft(({ models, ...now }) => ({
      ...now,
      // An API that was found is that of one address.
      models: change.baseUrl === undefined ? models : models.map(withoutApi),
      ...change,
    }))
  const [result, setResult] = useState<EndpointTestResult | null>(null)
  const { busy: testing, problem, attempt } = useAttempt()
  const { apiKey } = draft
  const baseUrl = draft.baseUrl.trim()
  const keeps = endpoint?.hasKey === true && apiKey === '' && baseUrl === endpoint.baseUrl
  const test = () =>
    attempt(async () => {
      setResult(null)
      const [first] = draft.models
      const now = await call('testEndpoint', {
        body: {
          baseUrl,
          apiKey: apiKey.trim() === '' ? undefined : apiKey.trim(),
          id: endpoint?.id,
          model: firstModelOf(draft) === '' ? undefined : firstModelOf(draft),
          wire: first?.wire ?? undefined,
          streaming: first?.streaming,
        },
      })
      setResult(now)
      const { wire } = now
      if (first === undefined || wire === undefined) return
      // Keep changes that were typed in the meantime.
      setDraft((typed) => ({
        ...typed,
        models: typed.models.map((model) =>
          model.key === first.key && model.name === first.name ? { ...model, wire } : model,
        ),
      }))
    })
  const choosePreset = (id: string) => {
    set({ preset: id })
    const chosen = PRESETS.find((one) => one.id === id)
    if (chosen === undefined) return
    set({ name: chosen.name, baseUrl: chosen.baseUrl })
    setResult(null)
  }
  return { draft, set, keeps, choosePreset, result, testing, problem, test }
}

function AddressFields({ draft, set }: DraftProps) {
  const hint = PRESETS.find(({ id }) => id === draft.preset)?.hint
  return (
    <div className="grid gap-4 sm:grid-cols-[1fr_2fr]">
      <Field
        label="Name"
        value={draft.name}
        required
        maxLength={60}
        autoComplete="off"
        onChange={({ target }) => set({ name: target.value })}
      />
      <Field
        label="Address"
        type="url"
        value={draft.baseUrl}
        required
        maxLength={500}
        autoComplete="off"
        placeholder="https://…/v1"
        hint={hint}
        onChange={({ target }) => set({ baseUrl: target.value })}
      />
    </div>
  )
}

function KeyField({ draft, set, keeps }: DraftProps & { keeps: boolean }) {
  return (
    <PasswordField
      label="API key"
      autoComplete="new-password"
      value={draft.apiKey}
      maxLength={4096}
      placeholder={keeps ? 'Stored' : 'None'}
      hint={keeps ? 'Leave empty to keep the stored key.' : 'Leave empty if your server needs none.'}
      onChange={({ target }) => set({ apiKey: target.value })}
    />
  )
}

function ModelsField(props: {
  models: readonly ModelDraft[]
  /** Names of those that the endpoint has. */
  offered: readonly string[]
  onChange: (models: readonly ModelDraft[]) => void
}) {
  const { models, offered, onChange } = props
  const list = useId()
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1.5 text-sm font-medium">Models</legend>
      <datalist id={list}>
        {offered.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {models.map((model, at) => (
        <ModelRow
          key={model.key}
          model={model}
          list={list}
          alone={models.length === 1}
          onChange={(next) => onChange(models.map((one, place) => (place === at ? next : one)))}
          onRemove={() => onChange(models.filter((one) => one !== model))}
        />
      ))}
      <div className="flex flex-wrap gap-2">
        <Button size="sm" onClick={() => onChange([...models, emptyModel()])}>
          <Plus className="size-3.5" aria-hidden /> Another model
        </Button>
      </div>
    </fieldset>
  )
}

const PRICE = { inputMode: 'decimal', pattern: '[0-9]*[.]?[0-9]*' } as const

/** Fields of a model, next to its name. `needs`: required where that one is filled in. */
const MODEL_FIELDS: readonly (FieldProps & {
  name: 'label' | 'contextWindow' | 'input' | 'output' | 'cached' | 'cacheWrite'
  needs?: 'input' | 'output'
})[] = [
  {
    name: 'label',
    label: 'Label',
    maxLength: 200,
    autoComplete: 'off',
    hint: 'Shown instead of the name.',
  },
  {
    name: 'contextWindow',
    label: 'Context window',
    inputMode: 'numeric',
    pattern: '[0-9]*',
    hint: 'Tokens. Leave empty to detect it.',
  },
  {
    name: 'input',
    needs: 'output',
    label: 'Input price',
    ...PRICE,
    hint: 'US dollars per million tokens. Leave empty for the published price.',
  },
  { name: 'output', needs: 'input', label: 'Output price', ...PRICE },
  { name: 'cached', label: 'Cached input price', ...PRICE, hint: 'Defaults to the input price.' },
  { name: 'cacheWrite', label: 'Cache write price', ...PRICE, hint: 'Defaults to the input price.' },
]

function ModelRow(props: {
  model: ModelDraft
  /** Id of the list of those that the endpoint has. */
  list: string
  alone: boolean
  onChange: (model: ModelDraft) => void
  onRemove: () => void
}) {
  const { model } = props
  const set = (change: Partial<ModelDraft>) => props.onChange({ ...model, ...change })
  const named = model.name.trim() === '' ? 'the new model' : model.name
  return (
    <div className="rounded-lg border border-line p-2.5">
      <div className="flex items-center gap-2">
        <input
          aria-label="Model"
          list={props.list}
          className={INPUT}
          placeholder="The endpoint’s name for it"
          value={model.name}
          maxLength={200}
          autoComplete="off"
          spellCheck={false}
          onChange={({ target }) => props.onChange({ ...withoutApi(model), name: target.value })}
        />
        {!props.alone && (
          <IconButton label={`Remove ${named}`} onClick={props.onRemove}>
            <X aria-hidden />
          </IconButton>
        )}
      </div>
      <details className="mt-1.5 text-sm">
        <summary className="w-fit cursor-pointer rounded py-1 text-xs text-muted hover:text-ink pointer-coarse:py-3.5">
          Label, context, images, prices, API
        </summary>
        <div className="grid gap-3 pt-2 sm:grid-cols-2">
          {MODEL_FIELDS.map(({ name, needs, ...field }) => (
            <Field
              key={name}
              {...field}
              value={model[name] ?? ''}
              required={needs !== undefined && model[needs] !== ''}
              onChange={({ target }) => set({ [name]: target.value })}
            />
          ))}
          <Tick label="Supports images" checked={model.images} onChange={(images) => set({ images })} />
          <Choice
            label="API"
            value={model.wire ?? ''}
            options={[['', 'Automatic'], ...wireName.options.map((wire) => [wire, API_NAMES[wire]] as const)]}
            onChange={(value) => set({ wire: value === '' ? null : wireName.parse(value) })}
          />
          <Tick
            label="Doesn’t support streaming"
            checked={model.streaming === false}
            onChange={(whole) => set({ streaming: !whole })}
          />
        </div>
      </details>
    </div>
  )
}

function Tick(props: { label: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label className="flex items-center gap-2 text-sm pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={props.checked}
        onChange={({ target }) => props.onChange(target.checked)}
      />
      {props.label}
    </label>
  )
}

const STEP_WORDS = { list: 'Models', stream: 'API', tool: 'Tool call' }

function Outcome({ result }: { result: EndpointTestResult }) {
  return (
    <div role="status">
      <ul
        aria-label="Test results"
        className="flex flex-col gap-1.5 rounded-lg border border-line bg-sunken p-3 text-sm"
      >
        {result.steps.map(({ step, ok, message }, place) => (
          <li key={place} className="flex gap-2">
            {ok ? (
              <CircleCheck className="mt-0.5 size-4 shrink-0 text-well" aria-hidden />
            ) : (
              <CircleAlert
                className={`mt-0.5 size-4 shrink-0 ${step === 'list' || result.wire !== undefined ? 'text-waiting' : 'text-failed'}`}
                aria-hidden
              />
            )}
            <span className="min-w-0 [overflow-wrap:anywhere]">
              <span className="font-medium">{STEP_WORDS[step]}</span>:{' '}
              <span className="text-muted">{message}</span>
            </span>
          </li>
        ))}
      </ul>
    </div>
  )
}
