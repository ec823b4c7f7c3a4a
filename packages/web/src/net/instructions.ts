/** What the agent keeps to beside the conversation, as functions over HTTP. Failures are `ApiError`s. */
import { instructions, type TeamInstructions, teamInstructions } from '@sandlot/shared/instructions'
import { call } from './http.ts'

/** One's own; empty when there are none. */
export async function fetchInstructions(): Promise<string> {
  return (await call(instructions, 'GET', '/api/instructions')).text
}

/** Answers what is kept. */
export async function saveInstructions(text: string): Promise<string> {
  return (await call(instructions, 'PUT', '/api/instructions', { text })).text
}

export function fetchTeamInstructions(): Promise<TeamInstructions> {
  return call(teamInstructions, 'GET', '/api/instructions/team')
}

/** Answers what is kept. Administrators only. */
export async function saveTeamInstructions(text: string): Promise<string> {
  return (await call(teamInstructions, 'PUT', '/api/instructions/team', { text })).text
}
