/** HTTP calls that list, open and close a person's terminals; their content comes by WebSocket. */
import { type Terminal, openedTerminal, terminalList } from '@sandlot/shared/workspace/terminals'
import { z } from 'zod'
import { call } from './http.ts'

/** Oldest first. */
export async function fetchTerminals(): Promise<Terminal[]> {
  return (await call(terminalList, 'GET', '/api/terminals')).terminals
}

export function openTerminal(size: { columns: number; rows: number }): Promise<Terminal> {
  return call(openedTerminal, 'POST', '/api/terminals', size)
}

export async function closeTerminal(id: string): Promise<void> {
  await call(z.unknown(), 'DELETE', `/api/terminals/${id}`)
}
