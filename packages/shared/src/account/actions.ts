/** Actions on accounts: ways to sign in, keys, rules, secrets, instructions, notifications. */
import { z } from 'zod'
import { type Action, acts, adminChat, anyone, chat, cookie, read } from '../base/action.ts'
import { rule } from '../chat/rules.ts'
import {
  notificationChoice,
  notificationSettings,
  notificationTest,
  pushEnd,
  pushKey,
  pushSubscription,
} from '../chat/notifications.ts'
import { effectiveSettingsView } from './agent-settings.ts'
import {
  deleteAccountRequest,
  keyList,
  me,
  newApiKey,
  newKeyRequest,
  newNameRequest,
  newPasswordRequest,
  setupRequest,
  setupState,
  signInRequest,
} from './api.ts'
import { instructions, teamInstructions } from './instructions.ts'
import { askedReport, newRule, ruleList, rulePreview } from './rules-api.ts'
import { secretList, secretName, secretValue } from './secrets.ts'
import {
  acceptInvitationRequest,
  accountWays,
  beginSignInRequest,
  invitationLook,
  invitationOffer,
  linkProviderRequest,
  newSecondFactor,
  resetPasswordRequest,
  resetRequest,
  secondFactorPassword,
  secondFactorRemoval,
  secondFactorRequest,
  secondFactorWanted,
  signedOut,
  signInEntries,
  signInProblem,
  signInUrl,
  signInWays,
} from './sign-in-api.ts'

const signedIn = z.union([me, secondFactorWanted])
const rules = acts('rules')
const secrets = acts('secrets')
const instructionsOf = (of: 'own' | 'team') => ({ method: '_sandlot/instructions', fields: { of } }) as const
const secret = z.object({ name: secretName })

export const accountActions = {
  getSetup: anyone('GET /api/setup', { response: setupState }),
  setUp: anyone('POST /api/setup', { request: setupRequest, response: me }),
  signIn: anyone('POST /api/sign-in', { request: signInRequest, response: signedIn }),
  signInWithCode: anyone('POST /api/sign-in/code', { request: secondFactorRequest, response: me }),
  signOut: anyone('POST /api/sign-out', { response: signedOut }),
  listWaysIn: anyone('GET /api/sign-in/providers', { response: signInWays }),
  beginSignIn: anyone('POST /api/sign-in/providers/:id', {
    request: beginSignInRequest,
    response: signInUrl,
  }),
  finishSignIn: anyone('GET /api/sign-in/callback/:id', { response: 'bytes' }),
  getSignInProblem: anyone('GET /api/sign-in/problems/:id', { response: signInProblem }),
  linkProvider: cookie('POST /api/sign-in/providers/:id/link', {
    request: linkProviderRequest,
    response: signInUrl,
  }),
  showInvitation: anyone('POST /api/invitations/look', {
    request: invitationLook,
    response: invitationOffer,
  }),
  acceptInvitation: anyone('POST /api/invitations/accept', {
    request: acceptInvitationRequest,
    response: me,
  }),
  beginReset: anyone('POST /api/reset', { request: resetRequest }),
  finishReset: anyone('POST /api/reset/password', { request: resetPasswordRequest }),

  getMe: read('GET /api/me', { response: me }),
  getOwnEffective: read('GET /api/me/effective', { response: effectiveSettingsView }),
  changePassword: cookie('PUT /api/password', { request: newPasswordRequest }),
  changeName: cookie('PUT /api/account/name', { request: newNameRequest }),
  listKeys: read('GET /api/keys', { response: keyList }),
  createKey: cookie('POST /api/keys', { request: newKeyRequest, response: newApiKey, status: 201 }),
  deleteKey: cookie('DELETE /api/keys/:id'),
  listWays: cookie('GET /api/account/ways', { response: accountWays }),
  beginSecondFactor: cookie('POST /api/account/second-factor', {
    request: secondFactorPassword,
    response: newSecondFactor,
  }),
  confirmSecondFactor: cookie('POST /api/account/second-factor/confirm', { request: secondFactorRequest }),
  disableSecondFactor: cookie('POST /api/account/second-factor/disable', { request: secondFactorRemoval }),
  listSignIns: cookie('GET /api/account/sign-ins', { response: signInEntries }),
  endOtherSignIns: cookie('DELETE /api/account/sign-ins'),
  endSignIn: cookie('DELETE /api/account/sign-ins/:id'),
  unlinkProvider: cookie('DELETE /api/account/providers/:id'),

  listRules: read('GET /api/rules', { response: ruleList, agent: rules('list') }),
  listAsked: read('GET /api/rules/asked', { response: askedReport, agent: rules('asked') }),
  addRule: cookie('POST /api/rules', {
    request: newRule,
    response: rule,
    status: 201,
    agent: rules('add', 'rule'),
  }),
  previewRule: chat('POST /api/rules/preview', {
    request: newRule,
    response: rulePreview,
    agent: rules('preview', 'rule'),
  }),
  revokeRule: cookie('DELETE /api/rules/:id', { agent: rules('revoke') }),
  listSecrets: read('GET /api/secrets', { response: secretList, agent: secrets('list') }),
  setSecret: cookie('PUT /api/secrets/:name', {
    params: secret,
    request: secretValue,
    agent: secrets('set'),
  }),
  removeSecret: cookie('DELETE /api/secrets/:name', { params: secret, agent: secrets('remove') }),
  getInstructions: read('GET /api/instructions', { response: instructions, agent: instructionsOf('own') }),
  putInstructions: cookie('PUT /api/instructions', {
    request: instructions,
    response: instructions,
    agent: instructionsOf('own'),
  }),
  getTeamInstructions: read('GET /api/instructions/team', {
    response: teamInstructions,
    agent: instructionsOf('team'),
  }),
  putTeamInstructions: adminChat('PUT /api/instructions/team', {
    request: instructions,
    response: teamInstructions,
    agent: instructionsOf('team'),
  }),
  getNotifications: cookie('GET /api/notices/settings', { response: notificationSettings }),
  putNotifications: cookie('PUT /api/notices/settings', {
    request: notificationChoice,
    response: notificationSettings,
  }),
  getPushKey: read('GET /api/notices/push', { response: pushKey }),
  subscribePush: cookie('POST /api/notices/push', { request: pushSubscription }),
  unsubscribePush: cookie('DELETE /api/notices/push', { request: pushEnd }),
  testNotifications: cookie('POST /api/notices/test', { response: notificationTest }),
  deleteAccount: cookie('POST /api/account/delete', { request: deleteAccountRequest }),
  exportOwnData: cookie('GET /api/export', { response: 'bytes' }),
  finishMcpSignIn: cookie('GET /oauth/mcp', { response: 'bytes' }),
} satisfies Record<string, Action>
