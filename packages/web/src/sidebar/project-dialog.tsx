import {
  type NewProject,
  type Project,
  newProject,
  project as projectSchema,
} from '@sandlot/shared/chat/chats'
import { MODES, isWithin } from '@sandlot/shared/chat/mode'
import { MAX_INSTRUCTION_BYTES } from '@sandlot/shared/base/instruction-text'
import { useState } from 'react'
import { call } from '../net/call.ts'
import { useSubmit } from '../auth/use-submit.ts'
import { useChat } from '../state/chat-context.ts'
import { MODE_WORDS } from '../chat/composer/mode-menu.tsx'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Choice, Field, INPUT, Labelled } from '../ui/field.tsx'
import { TitledDialog } from '../ui/titled-dialog.tsx'
import { loadProjects } from '../state/chat-list-state.ts'

/** A new project, or one that is changed. `onSaved` gets what is kept. */
export function ProjectDialog(props: {
  project: Project | null
  onClose: () => void
  onSaved: (project: Project) => void
}) {
  const { project } = props
  const [values, setValues] = useState<NewProject>({
    name: project?.name ?? '',
    folder: project?.folder ?? '',
    instructions: project?.instructions ?? '',
    mode: project?.mode ?? null,
    model: project?.model ?? null,
  })
  const set = (change: Partial<NewProject>) => setValues({ ...values, ...change })
  const { busy, problem, onSubmit } = useSubmit(async () => {
    const checked = newProject.safeParse(values)
    if (!checked.success) throw new Error(checked.error.issues[0]?.message ?? 'Can’t save this.')
    const body = checked.data
    const stored = await (project === null
      ? call('addProject', { body })
      : call('changeProject', { params: { id: project.id }, body }))
    await loadProjects()
    props.onSaved(projectSchema.parse(stored))
    props.onClose()
  })
  return (
    <TitledDialog
      title={project === null ? 'New project' : 'Project'}
      size="w-[30rem] max-h-[calc(100dvh-2rem)]"
      open
      onOpenChange={(open) => !open && props.onClose()}
    >
      <form onSubmit={onSubmit} className="flex min-h-0 flex-col">
        <div className="flex min-h-0 flex-col gap-4 overflow-y-auto p-5">
          {problem !== null && <Alert>{problem}</Alert>}
          <ProjectFields values={values} onChange={set} />
          <NewChats values={values} onChange={set} />
        </div>
        <div className="flex justify-end gap-2 border-t border-line px-5 py-3">
          <Button className="max-md:h-11" onClick={props.onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            variant="primary"
            className="max-md:h-11"
            disabled={busy || values.name.trim() === ''}
          >
            {project === null ? 'Create' : 'Save'}
          </Button>
        </div>
      </form>
    </TitledDialog>
  )
}

interface FieldsProps {
  values: NewProject
  onChange: (change: Partial<NewProject>) => void
}

function ProjectFields({ values, onChange }: FieldsProps) {
  return (
    <>
      <Field
        label="Name"
        value={values.name}
        maxLength={100}
        required
        autoComplete="off"
        onChange={({ target }) => onChange({ name: target.value })}
      />
      <Field
        label="Folder in your workspace"
        hint="Where this project’s chats work. Leave empty for the whole workspace."
        placeholder="projects/garden"
        value={values.folder}
        maxLength={300}
        autoComplete="off"
        onChange={({ target }) => onChange({ folder: target.value })}
      />
      <Labelled label="Instructions">
        {(id) => (
          <textarea
            id={id}
            dir="auto"
            rows={5}
            value={values.instructions}
            maxLength={MAX_INSTRUCTION_BYTES}
            placeholder="Applied in these chats, after your own instructions."
            onChange={({ target }) => onChange({ instructions: target.value })}
            className={`${INPUT} h-auto resize-y py-2`}
          />
        )}
      </Labelled>
    </>
  )
}

/** Mode and model of chats that begin in the project. */
function NewChats({ values, onChange }: FieldsProps) {
  const { me } = useChat()
  const models = me.models ?? []
  return (
    <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
      <Choice
        label="New chats start in"
        value={values.mode ?? ''}
        options={[
          ['', 'Default mode'],
          // A mode chosen before a ceiling was set stays; the agent lowers it.
          ...MODES.filter((mode) => mode === values.mode || isWithin(me.modeCeiling, mode)).map(
            (mode) => [mode, MODE_WORDS[mode].name] as const,
          ),
        ]}
        onChange={(mode) => onChange({ mode: MODES.find((one) => one === mode) ?? null })}
      />
      {models.length > 1 && (
        <Choice
          label="and ask"
          value={values.model ?? ''}
          options={[['', 'Default model'], ...models.map(({ name }) => [name, name] as const)]}
          onChange={(model) => onChange({ model: model === '' ? null : model })}
        />
      )}
    </div>
  )
}
