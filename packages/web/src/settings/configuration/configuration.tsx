/** Every setting of this deployment with where its value comes from. Nothing is changed here. */
import type { SettingRow } from '@sandlot/shared/admin/configuration'
import { useId, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatCount } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { Part } from '../part.tsx'

const SOURCES: Record<SettingRow['source'], string> = {
  environment: 'environment',
  env_file: '.env',
  value_file: 'a file',
  agent_env: 'agent.env',
  file: 'configuration file',
  default: 'default',
  page: 'these settings',
}

const OTHERS = { 'engine-gate': 'Engine gate', backup: 'Backups', launcher: 'Launcher' } as const

export function ConfigurationSection() {
  const [wanted, setWanted] = useState('')
  const [all, setAll] = useState(false)
  const { data: view, problem } = useResource('configuration', (signal) =>
    call('getConfiguration', { signal }),
  )
  if (view === null) return problem === null ? null : <Alert>{problem}</Alert>
  const text = wanted.trim().toLowerCase()
  const found = (rows: readonly SettingRow[]) =>
    rows.filter(
      ({ name, meaning = '', source }) =>
        (all || text !== '' || source !== 'default') && `${name} ${meaning}`.toLowerCase().includes(text),
    )
  return (
    <>
      <div className="flex flex-col gap-3">
        <p className="text-sm text-muted">
          Set in the environment, in <code className="text-xs">.env</code> or in the configuration file.
          Changes there apply after a restart; changes on a page apply immediately. Secret values aren’t
          shown.
        </p>
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
          <SearchField
            label="Find a setting"
            placeholder="Find a setting"
            className="basis-56"
            value={wanted}
            onChange={setWanted}
          />
          <label className="flex items-center gap-2 text-sm pointer-coarse:min-h-11">
            <input
              type="checkbox"
              className="size-4 accent-accent"
              checked={all}
              onChange={({ target }) => setAll(target.checked)}
            />
            Show defaults
          </label>
        </div>
      </div>
      <Process title="Agent" rows={view.agent && found(view.agent)} />
      <Process title="Service" rows={found(view.service)} />
      {view.others?.map(({ process, settings }) => (
        <Process key={process} title={OTHERS[process]} rows={found(settings)} />
      ))}
      {view.others === null && (
        <Part
          title="Not shown here"
          text="Settings of the engine gate, backups and image builds, which only those processes have. With compose, docker compose config shows them, secrets included."
        >
          {null}
        </Part>
      )}
    </>
  )
}

function Process(props: { title: string; rows: readonly SettingRow[] | null }) {
  const { title, rows } = props
  return (
    <Part
      title={title}
      text={
        rows === null ? 'Not responding, so its settings are unknown.' : formatCount(rows.length, 'setting')
      }
    >
      {rows !== null && rows.length > 0 && (
        <ul
          aria-label={`Settings of the ${title.toLowerCase()}`}
          className="divide-y divide-line rounded-lg border border-line"
        >
          {rows.map((row) => (
            <Line key={row.name} row={row} />
          ))}
        </ul>
      )}
    </Part>
  )
}

function Line({ row }: { row: SettingRow }) {
  const { name, value, redacted, meaning, source, from, restart } = row
  const id = useId()
  return (
    <li aria-labelledby={id} className="flex flex-col gap-0.5 px-3 py-2">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <span id={id} className="font-mono text-xs font-medium [overflow-wrap:anywhere]">
          {name}
        </span>
        <span className="ml-auto rounded-full border border-line px-2 py-px text-2xs text-muted">
          {SOURCES[source]}
          {!restart && ' · immediate'}
        </span>
      </div>
      <p className={cn('font-mono text-xs [overflow-wrap:anywhere]', value === null && 'text-muted')}>
        {redacted ? '•••••• (not shown)' : (value ?? 'not set')}
      </p>
      {from !== undefined && <p className="text-xs text-muted [overflow-wrap:anywhere]">{from}</p>}
      {meaning !== undefined && <p className="text-xs text-muted [overflow-wrap:anywhere]">{meaning}</p>}
    </li>
  )
}
