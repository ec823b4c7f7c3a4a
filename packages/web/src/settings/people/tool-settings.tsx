/** Which tools a team or a person has: all, none, or single ones by id. */
import { Plus, X } from 'lucide-react'
import { useId, useState } from 'react'
import { Button, IconButton } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { cn } from '../../lib/cn.ts'
import type { ToolSettings } from './person-tools.ts'
import { Choice } from './setting-fields.tsx'

/** `offered`: ids of those there are, without those of MCP servers. */
export function Tools(props: {
  value: ToolSettings
  offered: readonly string[]
  onChange: (value: ToolSettings) => void
}) {
  const { value, offered, onChange } = props
  const [name, setName] = useState('')
  const kind = typeof value === 'boolean' ? (value ? 'all' : 'none') : 'named'
  const named = typeof value === 'boolean' ? {} : value
  const add = () => {
    if (name.trim() === '') return
    onChange({ ...named, [name.trim()]: true })
    setName('')
  }
  return (
    <div className="flex flex-col gap-2">
      <Choice
        label="Tools"
        value={kind}
        choices={[
          ['named', 'Single tools'],
          ['none', 'None'],
          ['all', 'Everything available'],
        ]}
        onChange={(chosen) => onChange(chosen === 'named' ? {} : chosen === 'all')}
      />
      {kind === 'named' && (
        <>
          {Object.entries(named).map(([id, on]) => (
            <NamedTool
              key={id}
              id={id}
              isOn={on}
              onSet={(next) => onChange({ ...named, [id]: next })}
              onRemove={() =>
                onChange(Object.fromEntries(Object.entries(named).filter(([one]) => one !== id)))
              }
            />
          ))}
          <ToolToAdd
            name={name}
            offered={offered.filter((id) => !Object.hasOwn(named, id))}
            onName={setName}
            onAdd={add}
          />
        </>
      )}
    </div>
  )
}

function ToolToAdd(props: {
  name: string
  offered: readonly string[]
  onName: (name: string) => void
  onAdd: () => void
}) {
  const { name, offered, onAdd } = props
  const listId = useId()
  return (
    <div className="flex gap-2">
      <input
        aria-label="Tool to add"
        list={listId}
        className={cn(INPUT, 'font-mono')}
        placeholder="run_shell_command"
        value={name}
        spellCheck={false}
        autoCapitalize="off"
        maxLength={256}
        onChange={({ target }) => props.onName(target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return
          event.preventDefault()
          onAdd()
        }}
      />
      <datalist id={listId}>
        {offered.map((id) => (
          <option key={id} value={id} />
        ))}
      </datalist>
      <Button className="h-10 pointer-coarse:h-11" disabled={name.trim() === ''} onClick={onAdd}>
        <Plus className="size-4" aria-hidden /> Add
      </Button>
    </div>
  )
}

function NamedTool(props: { id: string; isOn: boolean; onSet: (on: boolean) => void; onRemove: () => void }) {
  const { id } = props
  return (
    <div className="flex items-center gap-2">
      <code className="min-w-0 flex-1 truncate text-xs">{id}</code>
      <select
        aria-label={`Tool ${id}`}
        className={cn(INPUT, 'w-36')}
        value={props.isOn ? 'on' : 'off'}
        onChange={({ target }) => props.onSet(target.value === 'on')}
      >
        <option value="on">Allowed</option>
        <option value="off">Taken away</option>
      </select>
      <IconButton label={`Inherit ${id}`} onClick={props.onRemove}>
        <X aria-hidden />
      </IconButton>
    </div>
  )
}
