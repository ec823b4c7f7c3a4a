/** A sandbox in words. Pure. */
import type { SandboxView } from '@sandlot/shared/workspace/sandbox'

export const STATE_WORDS: Record<SandboxView['state'], { title: string; about: string }> = {
  none: {
    title: 'Not made yet',
    about: 'It’s created by the agent’s first command or your first terminal, in a few seconds.',
  },
  starting: {
    title: 'Starting…',
    about: 'It’s being prepared. The first time may take longer.',
  },
  ready: { title: 'Running', about: 'Commands start immediately.' },
  resting: { title: 'Resting', about: 'Paused while idle. The next command wakes it.' },
  stopped: {
    title: 'Stopped',
    about: 'The next command or terminal starts it again. Your workspace is kept.',
  },
}

/** A step of the start as a line. */
export function stepWords({ step, about }: SandboxView['steps'][number], image: string): string {
  switch (step) {
    case 'line':
      return 'No prepared container was free: waiting to start one'
    case 'slot':
      return `Your workspace: ${about}`
    case 'pool':
      return `A prepared container was free: ${about}`
    case 'container':
      return `Container ${about} runs, from ${image}`
    case 'hello':
      return `Its supervisor, sbxd, has answered: ${about}`
    case 'proof':
      return 'Isolation checked'
    case 'network':
      return 'Network to allowed hosts ready'
  }
}

export function networkWords({ mode, hosts, ask }: SandboxView['network']): string {
  const asks = ask ? ' The agent may ask you for more hosts.' : ''
  if (mode === 'none') return 'No network.'
  if (hosts.length === 0) return `No network hosts allowed.${asks}`
  if (hosts.includes('*')) return `All public hosts.${asks}`
  return `Only ${listed(hosts)}.${asks}`
}

const MOST_HOSTS = 12

function listed(hosts: readonly string[]): string {
  const shown = hosts.slice(0, MOST_HOSTS)
  const more = hosts.length - shown.length
  if (more > 0) return `${shown.join(', ')} and ${more} more`
  return shown.length === 1 ? (shown[0] ?? '') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}

/** Processors in use between two looks, of those there are: 0 to 1. */
export function cpuShare(
  before: { cpuMs: number; at: number },
  now: { cpuMs: number; at: number },
  cpus: number,
): number {
  const passed = now.at - before.at
  // It was restarted in between.
  if (passed <= 0 || now.cpuMs < before.cpuMs) return 0
  return Math.min(1, (now.cpuMs - before.cpuMs) / passed / cpus)
}
