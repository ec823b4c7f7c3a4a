/** Requests of pages and dialogs, as functions over HTTP. Failures are `ApiError`s. */
import { instructions, teamInstructions, type TeamInstructions } from '@sandlot/shared/account/instructions'
import { secretList, type SecretList } from '@sandlot/shared/account/secrets'
import { z } from 'zod'
import { account, removal, type RemovedData, type UserList, userList } from '@sandlot/shared/account/api'
import type { Role } from '@sandlot/shared/account/role'
import { type WaitingApprovals, waitingApprovals } from '@sandlot/shared/chat/pending'
import { pendingApprovalList } from '@sandlot/shared/chat/pending-approvals'
import { rule, type Rule } from '@sandlot/shared/chat/rules'
import {
  type AskedReport,
  askedReport,
  ruleList,
  rulePreview,
  type NewRule,
  type RuleList,
  type RulePreview,
} from '@sandlot/shared/account/rules-api'
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

export async function fetchSecrets(): Promise<SecretList['secrets']> {
  return (await call(secretList, 'GET', '/api/secrets')).secrets
}

export async function setSecret(name: string, value: string): Promise<void> {
  await call(z.unknown(), 'PUT', `/api/secrets/${encodeURIComponent(name)}`, { value })
}

export async function removeSecret(name: string): Promise<void> {
  await call(z.unknown(), 'DELETE', `/api/secrets/${encodeURIComponent(name)}`)
}

/** Everybody who has an account, for administrators. */
interface NewPerson {
  name: string
  email: string
  password: string
  role: Role
}

export function fetchPeople(): Promise<UserList> {
  return call(userList, 'GET', '/api/users')
}

export async function addPerson(person: NewPerson): Promise<void> {
  await call(account, 'POST', '/api/users', person)
}

/**
 * The account ends at once. What is left is done when `fetchPeople` says so. `heir`: the user who
 * gets the chats that they share; absent: those end for others.
 */
export async function removePerson(id: string, data: RemovedData, heir?: string): Promise<void> {
  const handOver = heir === undefined ? '' : `&handOver=${encodeURIComponent(heir)}`
  await call(removal, 'DELETE', `/api/users/${encodeURIComponent(id)}?data=${data}${handOver}`)
}

/** One's own rules, as functions over HTTP. Failures are `ApiError`s. */
export function fetchRules(): Promise<RuleList> {
  return call(ruleList, 'GET', '/api/rules')
}

export function fetchAsked(): Promise<AskedReport> {
  return call(askedReport, 'GET', '/api/rules/asked')
}

export function addRule(made: NewRule): Promise<Rule> {
  return call(rule, 'POST', '/api/rules', made)
}

export function previewRule(made: NewRule): Promise<RulePreview> {
  return call(rulePreview, 'POST', '/api/rules/preview', made)
}

export async function revokeRule(id: string): Promise<void> {
  await call(z.unknown(), 'DELETE', `/api/rules/${encodeURIComponent(id)}`)
}

/** Pending approvals of this chat, with the schema of each call's arguments. */
export async function fetchApprovals(
  sessionId: string,
): Promise<z.infer<typeof pendingApprovalList>['approvals']> {
  const path = `/api/sessions/${encodeURIComponent(sessionId)}/approvals`
  return (await call(pendingApprovalList, 'GET', path)).approvals
}

/** Pending approvals of all chats in which one may answer, longest first. */
export function fetchWaiting(): Promise<WaitingApprovals> {
  return call(waitingApprovals, 'GET', '/api/approvals')
}

/** `input`: the call's arguments in place of the model's. */
export async function answerApproval(
  sessionId: string,
  callId: string,
  answer: { optionId: string; input?: Record<string, unknown> },
): Promise<void> {
  const path = `/api/sessions/${encodeURIComponent(sessionId)}/approvals/${encodeURIComponent(callId)}`
  await call(z.unknown(), 'POST', path, answer)
}

const forked = z.object({ sessionId: z.string() })

/**
 * A new chat that has everything of the branch up to this prompt and its answer. Answers its id.
 * Rejects with `ApiError`.
 */
export async function forkSession(sessionId: string, promptId: string): Promise<string> {
  const path = `/api/sessions/${encodeURIComponent(sessionId)}/fork`
  return (await call(forked, 'POST', path, { promptId })).sessionId
}
