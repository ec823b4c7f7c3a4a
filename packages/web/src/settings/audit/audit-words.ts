/** The audit log in words. */
import { type AuditEntry, type AuditKind, chatIdOf } from '@sandlot/shared/admin/audit'

/** By groups, as the filter shows them. */
export const AUDIT_WORDS: Record<AuditKind, string> = {
  signed_in: 'Signed in',
  sign_in_failed: 'Sign-in failed',
  signed_out: 'Signed out',
  sign_in_ended: 'Ended a sign-in',
  second_factor_on: 'Second factor on',
  second_factor_off: 'Second factor off',
  second_factor_removed: 'Removed a second factor',
  password_changed: 'Changed their password',
  password_reset_sent: 'Link for a new password',
  password_reset: 'New password',
  provider_linked: 'Linked a provider',
  provider_unlinked: 'Unlinked a provider',
  person_added: 'Added a person',
  person_changed: 'Changed a person',
  person_removed: 'Removed a person',
  invitation_made: 'Made an invitation',
  invitation_revoked: 'Revoked an invitation',
  invitation_accepted: 'Accepted an invitation',
  team_made: 'Made a team',
  team_renamed: 'Renamed a team',
  team_removed: 'Removed a team',
  team_member_added: 'Added to a team',
  team_member_removed: 'Took out of a team',
  key_made: 'Made an API key',
  key_deleted: 'Deleted an API key',
  secret_set: 'Set a secret',
  secret_removed: 'Removed a secret',
  chat_deleted: 'Deleted a chat',
  shared: 'Shared a chat',
  unshared: 'Ended a share',
  snapshot_made: 'Made a link to a chat',
  snapshot_removed: 'Removed a link to a chat',
  approval_answered: 'Answered an approval',
  rule_made: 'Made a rule',
  rule_revoked: 'Revoked a rule',
  host_refused: 'A host was refused',
  terminal_opened: 'Opened a terminal',
  terminal_closed: 'A terminal ended',
  exec_started: 'Ran a command',
  exec_ended: 'A command ended',
  sandbox_reset: 'Reset a sandbox',
  sandbox_stopped: 'Stopped a sandbox',
  settings_changed: 'Changed agent settings',
  settings_removed: 'Removed agent settings',
  instructions_changed: 'Changed team instructions',
  endpoint_changed: 'Changed a model endpoint',
  endpoint_removed: 'Removed a model endpoint',
  prompt_stopped: 'Stopped a prompt',
  server_changed: 'Changed an MCP server',
  server_removed: 'Removed an MCP server',
  rules_changed: 'Changed rules of the deployment',
  retention_changed: 'Changed retention',
  retention_run: 'Retention removed something',
  audit_exported: 'Exported the audit log',
  data_exported: 'Exported their own data',
  backup_made: 'A backup was made',
  backup_failed: 'A backup failed',
  backup_restored: 'Restored from a backup',
}

/** A kind of a newer version is shown as it is. */
export function auditWord(what: string): string {
  const known: Readonly<Record<string, string>> = AUDIT_WORDS
  return known[what] ?? what.replaceAll('_', ' ')
}

const WHAT_IDS_NAME: Partial<Record<AuditKind, string>> = {
  terminal_opened: 'terminal',
  terminal_closed: 'terminal',
  exec_started: 'command',
  exec_ended: 'command',
  prompt_stopped: 'prompt',
  rule_made: 'rule',
  rule_revoked: 'rule',
  rules_changed: 'rule',
  sandbox_reset: 'person',
  sandbox_stopped: 'person',
  team_member_added: 'person',
  team_member_removed: 'person',
  sign_in_ended: 'sign-in',
  invitation_revoked: 'invitation',
}

/** To whom or what it was done: a name, or a word and the id. Empty: to nothing else. */
export function whomWords(entry: AuditEntry): string {
  const { what, whom } = entry
  if (whom.name !== null || whom.id === null) return whom.name ?? ''
  const words: Readonly<Record<string, string>> = WHAT_IDS_NAME
  const word = chatIdOf(entry) === undefined ? words[what] : 'chat'
  return word === undefined ? whom.id : `${word} ${whom.id}`
}

/** By a key, from an address; empty: neither is known. */
export function fromWords({ from }: AuditEntry): string {
  const parts = [
    ...(from.address === null ? [] : [`from ${from.address}`]),
    ...(from.key === null ? [] : [`by the key “${from.key}”`]),
  ]
  return parts.join(', ')
}

/** Old and new values; unchanged ones are left out. */
export function changedFacts(entry: AuditEntry): { name: string; before?: string; after?: string }[] {
  const before = entry.before ?? {}
  const after = entry.after ?? {}
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap((name) => {
    const [was, is] = [textOf(before[name]), textOf(after[name])]
    return entry.before !== null && entry.after !== null && was === is
      ? []
      : [{ name, before: was, after: is }]
  })
}

function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}
