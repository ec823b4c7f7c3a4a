/** A question of the agent: its choices as buttons, or its form, and always a way not to answer. */
import {
  ANSWER_OPTION,
  DECLINE_OPTION,
  type Question,
  type QuestionContent,
  type QuestionField,
} from '@sandlot/shared/chat/question'
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { type SubmitEvent, useId, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { useChat } from '../../state/chat-context.ts'

type Value = QuestionContent[string]

export function ToolQuestion(props: { call: CallEntry; sessionId: string; question: Question }) {
  const { call, sessionId, question } = props
  const { chat } = useChat()
  const [answered, setAnswered] = useState(false)
  const [content, setContent] = useState<QuestionContent>({})
  const choices = (call.approval?.options ?? []).filter(({ optionId }) => optionId.startsWith('choice_'))
  const fields = Object.entries(question.requestedSchema.properties)
  const required = question.requestedSchema.required ?? []
  const missing = required.some((name) => content[name] === undefined || content[name] === '')
  const answer = (optionId: string, filledIn?: QuestionContent) => {
    setAnswered(true)
    chat.approve(sessionId, call.id, optionId, undefined, filledIn)
  }
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    answer(ANSWER_OPTION, content)
  }
  const set = (name: string, value: Value | undefined) =>
    setContent((before) => {
      const others = Object.entries(before).filter(([known]) => known !== name)
      return Object.fromEntries(value === undefined ? others : [...others, [name, value]])
    })

  return (
    <form data-testid="question" onSubmit={submit} className="flex flex-col gap-3">
      {question.message !== call.title && (
        <p className="text-sm [overflow-wrap:anywhere] whitespace-pre-wrap text-ink">{question.message}</p>
      )}
      <ChoiceButtons choices={choices} disabled={answered} onChoose={answer} />
      {fields.map(([name, field]) => (
        <QuestionInput
          key={name}
          name={name}
          field={choices.length > 0 ? { type: 'string', title: 'Or type your own answer' } : field}
          // Next to choices, text is optional.
          required={required.includes(name) || choices.length > 0}
          value={content[name]}
          onChange={(value) => set(name, value)}
        />
      ))}
      <AnswerButtons answered={answered} missing={missing} onSkip={() => answer(DECLINE_OPTION)} />
    </form>
  )
}

function ChoiceButtons(props: {
  choices: readonly PermissionOption[]
  disabled: boolean
  onChoose: (optionId: string) => void
}) {
  const { choices, disabled } = props
  if (choices.length === 0) return null
  return (
    <div className="flex flex-wrap gap-2">
      {choices.map(({ optionId, name }) => (
        <Button
          key={optionId}
          disabled={disabled}
          className="h-auto min-h-9 py-1.5 text-left whitespace-normal max-sm:min-h-11 max-sm:w-full"
          onClick={() => props.onChoose(optionId)}
        >
          {name}
        </Button>
      ))}
    </div>
  )
}

function AnswerButtons(props: { answered: boolean; missing: boolean; onSkip: () => void }) {
  const { answered, missing } = props
  return (
    <div className="flex flex-wrap gap-2">
      <Button
        type="submit"
        variant="primary"
        disabled={answered || missing}
        className="max-sm:h-11 max-sm:flex-1"
      >
        Answer
      </Button>
      <Button variant="ghost" disabled={answered} className="max-sm:h-11" onClick={props.onSkip}>
        Skip
      </Button>
    </div>
  )
}

/** One field by its type. A text that is empty is not filled in. */
function QuestionInput(props: {
  name: string
  field: QuestionField
  required: boolean
  value: Value | undefined
  onChange: (value: Value | undefined) => void
}) {
  const { field, value, onChange } = props
  const id = useId()
  const title = `${field.title ?? props.name}${props.required ? '' : ' (optional)'}`
  const label = (
    <label htmlFor={id} className="text-sm font-medium text-ink">
      {title}
    </label>
  )
  if (field.type === 'boolean') return <YesOrNo title={title} value={value === true} onChange={onChange} />
  if (field.type === 'array') return <Several {...props} title={title} />
  const choices = choicesOf(field)
  return (
    <div className="flex flex-col gap-1.5">
      {label}
      {choices.length > 0 ? (
        <select
          id={id}
          className={INPUT}
          value={typeof value === 'string' ? value : ''}
          onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value)}
        >
          <option value="">Choose…</option>
          {choices.map((choice) => (
            <option key={choice.const} value={choice.const}>
              {choice.title}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          className={INPUT}
          type={field.type === 'string' ? 'text' : 'number'}
          step={field.type === 'integer' ? 1 : 'any'}
          maxLength={4000}
          value={typeof value === 'string' || typeof value === 'number' ? value : ''}
          onChange={(event) => onChange(read(event.target.value, field))}
        />
      )}
    </div>
  )
}

function YesOrNo(props: { title: string; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <label className="flex items-center gap-2.5 text-sm font-medium text-ink pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={props.value}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      {props.title}
    </label>
  )
}

function Several(props: {
  field: QuestionField
  title: string
  value: Value | undefined
  onChange: (value: Value | undefined) => void
}) {
  const chosen = Array.isArray(props.value) ? props.value : []
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="mb-1 text-sm font-medium text-ink">{props.title}</legend>
      {choicesOf(props.field).map((choice) => (
        <label
          key={choice.const}
          className="flex items-center gap-2.5 text-sm text-ink pointer-coarse:min-h-11"
        >
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={chosen.includes(choice.const)}
            onChange={(event) => {
              const others = chosen.filter((one) => one !== choice.const)
              props.onChange(event.target.checked ? [...others, choice.const] : others)
            }}
          />
          {choice.title}
        </label>
      ))}
    </fieldset>
  )
}

function choicesOf({ enum: among, oneOf, items }: QuestionField): { const: string; title: string }[] {
  const plain = among ?? items?.enum
  return plain?.map((value) => ({ const: value, title: value })) ?? oneOf ?? items?.anyOf ?? []
}

function read(text: string, { type }: QuestionField): Value | undefined {
  if (text === '') return undefined
  return type === 'string' ? text : Number(text)
}
