/** Actions on accounts: ways to sign in, keys, rules, secrets, instructions, notifications. */
import { z } from 'zod'
import { ask, type Action } from '../base/action.ts'
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
const instructionsOf = (of: 'own' | 'team') => ({ method: '_sandlot/instructions', fields: { of } })
const secret = z.object({ name: secretName })

export const accountActions = {
  getSetup: { route: 'GET /api/setup', scope: 'public', response: setupState },
  setUp: { route: 'POST /api/setup', scope: 'public', request: setupRequest, response: me },
  signIn: { route: 'POST /api/sign-in', scope: 'public', request: signInRequest, response: signedIn },
  signInWithCode: {
    route: 'POST /api/sign-in/code',
    scope: 'public',
    request: secondFactorRequest,
    response: me,
  },
  signOut: { route: 'POST /api/sign-out', scope: 'public', response: signedOut },
  listWaysIn: { route: 'GET /api/sign-in/providers', scope: 'public', response: signInWays },
  beginSignIn: {
    route: 'POST /api/sign-in/providers/:id',
    scope: 'public',
    request: beginSignInRequest,
    response: signInUrl,
  },
  finishSignIn: { route: 'GET /api/sign-in/callback/:id', scope: 'public', response: 'bytes' },
  getSignInProblem: { route: 'GET /api/sign-in/problems/:id', scope: 'public', response: signInProblem },
  linkProvider: {
    route: 'POST /api/sign-in/providers/:id/link',
    scope: 'cookie',
    request: linkProviderRequest,
    response: signInUrl,
  },
  showInvitation: {
    route: 'POST /api/invitations/look',
    scope: 'public',
    request: invitationLook,
    response: invitationOffer,
  },
  acceptInvitation: {
    route: 'POST /api/invitations/accept',
    scope: 'public',
    request: acceptInvitationRequest,
    response: me,
  },
  beginReset: { route: 'POST /api/reset', scope: 'public', request: resetRequest },
  finishReset: { route: 'POST /api/reset/password', scope: 'public', request: resetPasswordRequest },

  getMe: { route: 'GET /api/me', scope: 'read', response: me },
  getOwnEffective: { route: 'GET /api/me/effective', scope: 'read', response: effectiveSettingsView },
  changePassword: { route: 'PUT /api/password', scope: 'cookie', request: newPasswordRequest },
  changeName: { route: 'PUT /api/account/name', scope: 'cookie', request: newNameRequest },
  listKeys: { route: 'GET /api/keys', scope: 'read', response: keyList },
  createKey: {
    route: 'POST /api/keys',
    scope: 'cookie',
    request: newKeyRequest,
    response: newApiKey,
    status: 201,
  },
  deleteKey: { route: 'DELETE /api/keys/:id', scope: 'cookie' },
  listWays: { route: 'GET /api/account/ways', scope: 'cookie', response: accountWays },
  beginSecondFactor: {
    route: 'POST /api/account/second-factor',
    scope: 'cookie',
    request: secondFactorPassword,
    response: newSecondFactor,
  },
  confirmSecondFactor: {
    route: 'POST /api/account/second-factor/confirm',
    scope: 'cookie',
    request: secondFactorRequest,
  },
  disableSecondFactor: {
    route: 'POST /api/account/second-factor/disable',
    scope: 'cookie',
    request: secondFactorRemoval,
  },
  listSignIns: { route: 'GET /api/account/sign-ins', scope: 'cookie', response: signInEntries },
  endOtherSignIns: { route: 'DELETE /api/account/sign-ins', scope: 'cookie' },
  endSignIn: { route: 'DELETE /api/account/sign-ins/:id', scope: 'cookie' },
  unlinkProvider: { route: 'DELETE /api/account/providers/:id', scope: 'cookie' },

  listRules: { route: 'GET /api/rules', scope: 'read', response: ruleList, agent: ask('rules', 'list') },
  listAsked: {
    route: 'GET /api/rules/asked',
    scope: 'read',
    response: askedReport,
    agent: ask('rules', 'asked'),
  },
  addRule: {
    route: 'POST /api/rules',
    scope: 'cookie',
    request: newRule,
    response: rule,
    status: 201,
    agent: ask('rules', 'add', { body: 'rule' }),
  },
  previewRule: {
    route: 'POST /api/rules/preview',
    scope: 'chat',
    request: newRule,
    response: rulePreview,
    agent: ask('rules', 'preview', { body: 'rule' }),
  },
  revokeRule: { route: 'DELETE /api/rules/:id', scope: 'cookie', agent: ask('rules', 'revoke') },
  listSecrets: {
    route: 'GET /api/secrets',
    scope: 'read',
    response: secretList,
    agent: ask('secrets', 'list'),
  },
  setSecret: {
    route: 'PUT /api/secrets/:name',
    scope: 'cookie',
    params: secret,
    request: secretValue,
    agent: ask('secrets', 'set'),
  },
  removeSecret: {
    route: 'DELETE /api/secrets/:name',
    scope: 'cookie',
    params: secret,
    agent: ask('secrets', 'remove'),
  },
  getInstructions: {
    route: 'GET /api/instructions',
    scope: 'read',
    response: instructions,
    agent: instructionsOf('own'),
  },
  putInstructions: {
    route: 'PUT /api/instructions',
    scope: 'cookie',
    request: instructions,
    response: instructions,
    agent: instructionsOf('own'),
  },
  getTeamInstructions: {
    route: 'GET /api/instructions/team',
    scope: 'read',
    response: teamInstructions,
    agent: instructionsOf('team'),
  },
  putTeamInstructions: {
    route: 'PUT /api/instructions/team',
    scope: 'chat',
    role: 'admin',
    request: instructions,
    response: teamInstructions,
    agent: instructionsOf('team'),
  },
  getNotifications: { route: 'GET /api/notices/settings', scope: 'cookie', response: notificationSettings },
  putNotifications: {
    route: 'PUT /api/notices/settings',
    scope: 'cookie',
    request: notificationChoice,
    response: notificationSettings,
  },
  getPushKey: { route: 'GET /api/notices/push', scope: 'read', response: pushKey },
  subscribePush: { route: 'POST /api/notices/push', scope: 'cookie', request: pushSubscription },
  unsubscribePush: { route: 'DELETE /api/notices/push', scope: 'cookie', request: pushEnd },
  testNotifications: { route: 'POST /api/notices/test', scope: 'cookie', response: notificationTest },
  deleteAccount: { route: 'POST /api/account/delete', scope: 'cookie', request: deleteAccountRequest },
  exportOwnData: { route: 'GET /api/export', scope: 'cookie', response: 'bytes' },
  finishMcpSignIn: { route: 'GET /oauth/mcp', scope: 'cookie', response: 'bytes' },
} as const satisfies Record<string, Action>
