/** A sandbox in words. Pure. */
import type { SandboxView } from '@sandlot/shared/workspace/sandbox'

export const STATE_WORDS: Record<SandboxView['state'], { title: string; about: string }> = {
  none: {
    title: 'Not made yet',
    about: 'The first command of the agent, or your first terminal, makes it. That takes a few seconds.',
  },
  starting: {
    title: 'Starting…',
    about: 'It is being made ready. The first time may take longer, when its image has to be prepared.',
  },
  ready: { title: 'Running', about: 'Commands start at once.' },
  resting: { title: 'Resting', about: 'Nothing runs in it, so it is paused. The next command wakes it.' },
  stopped: {
    title: 'Stopped',
    about: 'The next command, or a terminal, starts it again. Your workspace is kept.',
  },
}

/** A step of the start as a line. */
export function stepWords({ step, about }: SandboxView['steps'][number], image: string): string {
  switch (step) {
    case 'line':
      return 'No prepared one was free: waiting for a turn to start one'
    case 'slot':
      return `Your place in it: ${about}`
    case 'pool':
      return `A prepared container was free: ${about}`
    case 'container':
      return `Container ${about} runs, from ${image}`
    case 'hello':
      return `Its supervisor, sbxd, has answered: ${about}`
    case 'proof':
      return 'Its walls were tried: they hold'
    case 'network':
      return 'Its way to the allowed hosts is open'
  }
}

export function networkWords({ mode, hosts, ask }: SandboxView['network']): string {
  const asks = ask ? ' The agent may ask you for more hosts.' : ''
  if (mode === 'none') return 'It has no network at all.'
  if (hosts.length === 0) return `It reaches no host on the network.${asks}`
  if (hosts.includes('*')) return `It reaches every public host.${asks}`
  return `It reaches ${listed(hosts)}, and nothing else.${asks}`
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
