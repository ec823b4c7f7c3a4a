import { acp } from './commands/acp.ts'
import { backup } from './commands/backup.ts'
import { bench } from './commands/bench.ts'
import { bundle } from './commands/bundle.ts'
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
    summary:
      'prepare this machine and run Sandlot until Ctrl-C (--replicas: N agents and services, on PostgreSQL)',
  },
  down: {
    run: down,
    usage: 'down [--end|--purge]',
    summary:
      'stop Sandlot; the next up resumes its prompts (--end: end prompts, stop sandboxes; --purge: also delete workspaces)',
  },
  drain: {
    run: drain,
    usage: 'drain [--replica ID]',
    summary: 'move users from the agents of this machine to others before you stop it, on PostgreSQL',
  },
  install: {
    run: install,
    usage: 'install [--print|--remove]',
    summary:
      'start Sandlot at boot with systemd; needs root (--print: only show the unit; --remove: remove it)',
  },
  test: {
    run: test,
    usage: 'test [--full|kubernetes]',
    summary:
      'prepare this machine and run every test (--full: many more samples; kubernetes: only on a cluster)',
  },
  doctor: {
    run: doctor,
    usage: 'doctor [--json]',
    summary: 'check this machine and its configuration',
    stdout: 'data',
  },
  exec: {
    run: exec,
    usage: 'exec [--url U] [--key K] -- <command>',
    summary: 'run a command in your sandbox on any Sandlot and exit with its exit code (docs/exec.md)',
    stdout: 'data',
  },
  acp: {
    run: acp,
    usage: 'acp',
    summary: 'run the agent on stdin and stdout, for editors that speak ACP',
    stdout: 'data',
  },
  bench: {
    run: bench,
    usage: 'bench sandbox|agent|service|web',
    summary: 'measure sandboxes, the agent, the service or the page, each next to alternatives',
    stdout: 'data',
  },
  sandbox: {
    run: sandbox,
    usage: 'sandbox list|prune',
    summary: 'list all workspaces; remove those without an owner, after confirmation',
    stdout: 'data',
  },
  people: {
    run: people,
    usage: 'people list|show|role|password|remove',
    summary:
      'list users, show a user’s settings; while Sandlot is down, change a role, reset a password, remove an account',
    stdout: 'data',
  },
  keys: {
    run: keys,
    usage: 'keys rotate|new',
    summary:
      'replace the key that encrypts users’ secrets; Sandlot must not be running (new: keys for a cluster, docs/kubernetes.md)',
    stdout: 'data',
  },
  backup: {
    run: backup,
    usage: 'backup [--to DIR]',
    summary: 'write one file with everything, also while Sandlot runs (docs/backup.md)',
  },
  restore: {
    run: restore,
    usage: 'restore FILE [--unauthenticated]',
    summary: 'restore a backup into an empty data folder (--unauthenticated: also one of an earlier version)',
  },
  migrate: {
    run: migrate,
    usage: 'migrate --to postgres://…',
    summary: 'move chats and accounts from files into an empty PostgreSQL database (docs/postgresql.md)',
  },
  upgrade: {
    run: upgrade,
    usage: 'upgrade [VERSION]',
    summary: 'back up, switch to the new version and check it; roll back with all data if it does not start',
  },
  bundle: {
    run: bundle,
    usage: 'bundle [FILE]',
    summary: 'pack images and Helm chart into one file, for a cluster without a network (docs/kubernetes.md)',
  },
  tools: {
    run: tools,
    usage: 'tools [--json]',
    summary: 'list the agent’s tools, and whether each is offered',
    stdout: 'data',
  },
  dev: { run: dev, usage: 'dev', summary: 'like up, from the sources: changes are reloaded' },
}

export function helpText(): string {
  const width = Math.max(...Object.values(COMMANDS).map(({ usage }) => usage.length), 'help'.length)
  const line = (usage: string, summary: string): string => `  ./sandlot ${usage.padEnd(width)}  ${summary}\n`
  return [
    'Sandlot: a team chat with an AI agent that works in each person’s own container.\n\n',
    ...Object.values(COMMANDS).map(({ usage, summary }) => line(usage, summary)),
    line('help', 'show this help'),
    '\nSettings are environment variables or lines of .env; .env.example lists them.\n',
  ].join('')
}
