import { acp } from './commands/acp.ts'
import { backup } from './commands/backup.ts'
import { bench } from './commands/bench.ts'
import { dev } from './commands/dev.ts'
import { doctor } from './commands/doctor.ts'
import { down } from './commands/down.ts'
import { drain } from './commands/drain.ts'
import { exec } from './commands/exec.ts'
import { install } from './commands/install.ts'
import { keys } from './commands/keys.ts'
import { migrate } from './commands/migrate.ts'
import { people } from './commands/people.ts'
import { restore } from './commands/restore.ts'
import { sandbox } from './commands/sandbox.ts'
import { test } from './commands/test.ts'
import { tools } from './commands/tools.ts'
import { up } from './commands/up.ts'
import { upgrade } from './commands/upgrade.ts'
import type { Command } from './context.ts'

interface Listed {
  run: Command
  usage: string
  summary: string
  /** `data`: stdout belongs to the command's result, and steps are printed on stderr. */
  stdout?: 'data'
}

/** Every command, in the order of the help. */
export const COMMANDS: Record<string, Listed> = {
  up: {
    run: up,
    usage: 'up [--replicas N]',
    summary: 'everything needed to run, then run it; Ctrl-C ends it (--replicas: N of each, on PostgreSQL)',
  },
  down: {
    run: down,
    usage: 'down [--end|--purge]',
    summary:
      'end a running Sandlot; the next up goes on with its prompts (--end: they end, sandboxes stop; --purge: workspaces go)',
  },
  drain: {
    run: drain,
    usage: 'drain [--replica ID]',
    summary: 'hand the people of this machine’s agents over to others, on PostgreSQL; then end or restart it',
  },
  install: {
    run: install,
    usage: 'install [--print|--remove]',
    summary: 'have systemd start it at boot, as root; --print only shows the unit, --remove takes it back',
  },
  test: {
    run: test,
    usage: 'test [--full]',
    summary: 'everything needed to test, then test it; --full draws many more samples',
  },
  doctor: {
    run: doctor,
    usage: 'doctor [--json]',
    summary: 'check this machine and this configuration',
    stdout: 'data',
  },
  exec: {
    run: exec,
    usage: 'exec [--url U] [--key K] -- <command>',
    summary: 'run a command in one’s sandbox of any Sandlot, with its exit code; docs/exec.md',
    stdout: 'data',
  },
  acp: {
    run: acp,
    usage: 'acp',
    summary: 'the agent on stdin and stdout, for editors that speak ACP',
    stdout: 'data',
  },
  bench: {
    run: bench,
    usage: 'bench sandbox|agent|service',
    summary:
      'what a sandbox costs, what the agent and the way to the browser add; each beside what others do',
    stdout: 'data',
  },
  sandbox: {
    run: sandbox,
    usage: 'sandbox list|prune',
    summary: 'every workspace there is; remove those that are nobody’s, after asking',
    stdout: 'data',
  },
  people: {
    run: people,
    usage: 'people list|show|role|password|remove',
    summary:
      'who may sign in, and what holds for a person; another role, a new password for a locked-out person, or an account’s end, while Sandlot is down',
    stdout: 'data',
  },
  keys: {
    run: keys,
    usage: 'keys rotate',
    summary: 'a new key for the secrets that people keep here; Sandlot must not be running',
    stdout: 'data',
  },
  backup: {
    run: backup,
    usage: 'backup [--to DIR]',
    summary: 'one file with everything, also while Sandlot runs; docs/backup.md',
  },
  restore: {
    run: restore,
    usage: 'restore FILE [--unauthenticated]',
    summary:
      'make of a backup the same Sandlot, in an empty data folder (--unauthenticated: one of an earlier version)',
  },
  migrate: {
    run: migrate,
    usage: 'migrate --to postgres://…',
    summary: 'chats and accounts from their files into PostgreSQL, which is empty; docs/postgresql.md',
  },
  upgrade: {
    run: upgrade,
    usage: 'upgrade [VERSION]',
    summary: 'a backup, the new version, a check; back to this one, with its data, if that is not ready',
  },
  tools: {
    run: tools,
    usage: 'tools [--json]',
    summary: 'every tool of the agent, and whether it is offered',
    stdout: 'data',
  },
  dev: { run: dev, usage: 'dev', summary: 'like up, and what you change is loaded again at once' },
}

export function helpText(): string {
  const width = Math.max(...Object.values(COMMANDS).map(({ usage }) => usage.length), 'help'.length)
  const line = (usage: string, summary: string): string => `  ./sandlot ${usage.padEnd(width)}  ${summary}\n`
  return [
    'Sandlot: a team chat with an AI agent that works in each person’s own container.\n\n',
    ...Object.values(COMMANDS).map(({ usage, summary }) => line(usage, summary)),
    line('help', 'this'),
    '\nSettings are environment variables, or lines of .env; .env.example lists them.\n',
  ].join('')
}
