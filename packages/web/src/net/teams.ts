/** People, teams and what is set for them, for administrators. Failures are `ApiError`s. */
import { type Account, account } from '@sandlot/shared/account/api'
import {
  type EffectiveSettings,
  effectiveSettingsView,
  type SettingsAnswer,
  settingsAnswer,
  type SettingsSubject,
  type SettingsView,
  settingsView,
} from '@sandlot/shared/account/agent-settings'
import type { Role } from '@sandlot/shared/account/role'
import {
  type Invitation,
  invitationList,
  type NewInvitation,
  newInvitation,
  newPassword,
} from '@sandlot/shared/account/sign-in-api'
import { type ChangePersonRequest, type Team, team, teamList } from '@sandlot/shared/account/teams-api'
import { z } from 'zod'
import { call } from './http.ts'

const nothing = z.unknown()
const of = encodeURIComponent

export async function fetchTeams(): Promise<Team[]> {
  return (await call(teamList, 'GET', '/api/teams')).teams
}

export function createTeam(name: string): Promise<Team> {
  return call(team, 'POST', '/api/teams', { name })
}

/** `was`: the name that was shown; `conflict` where it is another one by now. */
export function renameTeam(id: string, name: string, was: string): Promise<Team> {
  return call(team, 'PATCH', `/api/teams/${of(id)}`, { name, was })
}

export async function removeTeam(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/teams/${of(id)}`)
}

export function setTeamMember(id: string, userId: string, member: boolean): Promise<Team> {
  return call(team, 'PUT', `/api/teams/${of(id)}/members/${of(userId)}`, { member })
}

export function changePerson(id: string, change: ChangePersonRequest): Promise<Account> {
  return call(account, 'PATCH', `/api/users/${of(id)}`, change)
}

/** Answers the new password. */
export async function resetPersonPassword(id: string): Promise<string> {
  return (await call(newPassword, 'POST', `/api/users/${of(id)}/password`)).password
}

export async function removePersonSecondFactor(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/users/${of(id)}/second-factor`)
}

function settingsPath({ kind, id }: SettingsSubject): string {
  return `/api/${kind === 'team' ? 'teams' : 'users'}/${of(id)}/settings`
}

export function fetchSettings(subject: SettingsSubject): Promise<SettingsAnswer> {
  return call(settingsAnswer, 'GET', settingsPath(subject))
}

export function saveSettings(subject: SettingsSubject, view: SettingsView): Promise<SettingsView> {
  return call(settingsView, 'PUT', settingsPath(subject), view)
}

/** The effective settings of a person, and the source of each. */
export function fetchEffective(id: string): Promise<EffectiveSettings> {
  return call(effectiveSettingsView, 'GET', `/api/users/${of(id)}/effective`)
}

export async function fetchInvitations(): Promise<Invitation[]> {
  return (await call(invitationList, 'GET', '/api/invitations')).invitations
}

export function createInvitation(wanted: {
  role: Role
  teams: string[]
  email?: string | undefined
  expiresInHours: number
}): Promise<NewInvitation> {
  return call(newInvitation, 'POST', '/api/invitations', wanted)
}

export async function withdrawInvitation(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/invitations/${of(id)}`)
}
