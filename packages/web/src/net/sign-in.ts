/** The ways in, as functions over HTTP. Failures are `ApiError`s. */
import {
  type AccountWays,
  accountWays,
  type InvitationOffer,
  invitationOffer,
  type NewSecondFactor,
  newSecondFactor,
  secondFactorWanted,
  type SignInEntry,
  signInEntries,
  signInProblem,
  signInUrl,
  type SignInWays,
  signInWays,
} from '@sandlot/shared/account/sign-in-api'
import type { SignInRequest } from '@sandlot/shared/account/api'
import { z } from 'zod'
import { call } from './http.ts'

const nothing = z.unknown()

export function fetchSignInWays(): Promise<SignInWays> {
  return call(signInWays, 'GET', '/api/sign-in/providers')
}

/** Resolves with what is wanted next: nothing, or a code. */
export async function signIn(form: SignInRequest): Promise<'done' | 'code'> {
  const answer = await call(nothing, 'POST', '/api/sign-in', form)
  return secondFactorWanted.safeParse(answer).success ? 'code' : 'done'
}

export async function sendCode(code: string): Promise<void> {
  await call(nothing, 'POST', '/api/sign-in/code', { code })
}

/** Leaves this page for the provider's. It leads back to `returnTo`. */
export async function leaveForProvider(
  id: string,
  body: { returnTo?: string | undefined; invitation?: string | undefined },
): Promise<void> {
  const { url } = await call(signInUrl, 'POST', `/api/sign-in/providers/${encodeURIComponent(id)}`, body)
  location.assign(url)
}

/** The same for a person who is signed in and wants one more way in. */
export async function linkProvider(
  id: string,
  body: { returnTo: string; password?: string | undefined },
): Promise<void> {
  const path = `/api/sign-in/providers/${encodeURIComponent(id)}/link`
  location.assign((await call(signInUrl, 'POST', path, body)).url)
}

/** Why a provider's sign-in failed. */
export async function fetchSignInProblem(id: string): Promise<string> {
  return (await call(signInProblem, 'GET', `/api/sign-in/problems/${encodeURIComponent(id)}`)).message
}

export function fetchInvitation(token: string): Promise<InvitationOffer> {
  return call(invitationOffer, 'POST', '/api/invitations/look', { token })
}

export async function acceptInvitation(form: {
  token: string
  name: string
  email: string
  password: string
}): Promise<void> {
  await call(nothing, 'POST', '/api/invitations/accept', form)
}

export async function askForReset(email: string): Promise<void> {
  await call(nothing, 'POST', '/api/reset', { email })
}

export async function resetPassword(token: string, password: string): Promise<void> {
  await call(nothing, 'POST', '/api/reset/password', { token, password })
}

export function fetchAccountWays(): Promise<AccountWays> {
  return call(accountWays, 'GET', '/api/account/ways')
}

export async function unlinkProvider(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/account/providers/${encodeURIComponent(id)}`)
}

/** It holds once it is confirmed by a code. */
export function beginSecondFactor(password: string): Promise<NewSecondFactor> {
  return call(newSecondFactor, 'POST', '/api/account/second-factor', { password })
}

export async function confirmSecondFactor(code: string): Promise<void> {
  await call(nothing, 'POST', '/api/account/second-factor/confirm', { code })
}

export async function removeSecondFactor(password: string, code: string): Promise<void> {
  await call(nothing, 'POST', '/api/account/second-factor/disable', { password, code })
}

/** One's own, last used first. */
export async function fetchSignIns(): Promise<SignInEntry[]> {
  return (await call(signInEntries, 'GET', '/api/account/sign-ins')).signIns
}

/** Without an id: all others. */
export async function endSignIn(id?: string): Promise<void> {
  await call(
    nothing,
    'DELETE',
    `/api/account/sign-ins${id === undefined ? '' : `/${encodeURIComponent(id)}`}`,
  )
}

/** Ends one's own account, with everything of it. */
export async function deleteAccount(form: { email: string; password: string | undefined }): Promise<void> {
  await call(nothing, 'POST', '/api/account/delete', form)
}
