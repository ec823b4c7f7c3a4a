/** The layers of the agent's instructions: the operator's, the team's, the person's. */
import { useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { InstructionsForm } from './instructions-form.tsx'

const loadOwn = async (signal: AbortSignal) => (await call('getInstructions', { signal })).text
const saveOwn = async (text: string) => (await call('putInstructions', { body: { text } })).text
const saveTeam = async (text: string) => (await call('putTeamInstructions', { body: { text } })).text

/** One's own, and what holds for everybody, to read. */
export function OwnInstructions(props: { isAdministrator: boolean }) {
  const { data: layers, problem } = useResource('layers', (signal) => call('getTeamInstructions', { signal }))
  const team = layers === null ? '' : layers.text === '' ? layers.configured : layers.text
  return (
    <div className="flex flex-col gap-3">
      <InstructionsForm
        label="Your instructions"
        placeholder="For example: answer in German; use TypeScript; keep it short."
        hold="Applies from your next message."
        load={loadOwn}
        save={saveOwn}
      />
      {problem !== null && <Alert>{problem}</Alert>}
      {layers !== null && layers.operator !== '' && (
        <Layer title="From your administrator" text={layers.operator} />
      )}
      {/* Authors of instructions see them below, in their own section. */}
      {team !== '' && !props.isAdministrator && <Layer title="From your team" text={team} />}
    </div>
  )
}

function Layer(props: { title: string; text: string }) {
  return (
    <details className="rounded-lg border border-line text-sm">
      <summary className="cursor-pointer px-3 py-2 text-muted pointer-coarse:py-3">{props.title}</summary>
      <p className="max-h-48 overflow-y-auto border-t border-line px-3 py-2 whitespace-pre-wrap [overflow-wrap:anywhere]">
        {props.text}
      </p>
    </details>
  )
}

/** Instructions of administrators for everybody's agent. */
export function TeamInstructions() {
  const [configured, setConfigured] = useState('')
  const load = async (signal: AbortSignal) => {
    const layers = await call('getTeamInstructions', { signal })
    setConfigured(layers.configured)
    return layers.text
  }
  return (
    <div className="flex flex-col gap-3">
      <InstructionsForm
        label="Instructions for the team"
        placeholder="For example: our code is on git.example.org; never push to main."
        hold="Applies from everybody’s next message."
        load={load}
        save={saveTeam}
      />
      {configured !== '' && (
        <Layer
          title="From the configuration file; applies while nothing is written above"
          text={configured}
        />
      )}
    </div>
  )
}
