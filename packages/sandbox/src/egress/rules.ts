import { domainToASCII } from 'node:url'

import { SandboxError } from '../errors.ts'
import { type Authority, readAuthority } from './host.ts'

/** Named lists for an allow-list. Each host is there because a client of that ecosystem asks it. */
const EGRESS_PRESETS = {
  'package-registries': [
    'registry.npmjs.org',
    'registry.yarnpkg.com',
    'pypi.org',
    'files.pythonhosted.org',
    'crates.io',
    'index.crates.io',
    'static.crates.io',
    'proxy.golang.org',
    'sum.golang.org',
    'rubygems.org',
    'index.rubygems.org',
    'repo.maven.apache.org',
    'repo1.maven.org',
    'deb.debian.org',
    'security.debian.org',
  ],
  'git-hosts': [
    'github.com',
    'codeload.github.com',
    'raw.githubusercontent.com',
    'objects.githubusercontent.com',
    'release-assets.githubusercontent.com',
    'github-cloud.githubusercontent.com',
    'gitlab.com',
    'bitbucket.org',
    'codeberg.org',
  ],
} as const satisfies Record<string, readonly string[]>

/** Ports that a rule without one stands for. */
const USUAL_PORTS: readonly number[] = [80, 443]

interface Rule {
  /** The name itself, or its required suffix with the dot. */
  name: string
  below: boolean
  ports: readonly number[]
}

export interface Rules {
  /** `yes`; `port`: the host is listed, with other ports; `no`. */
  allows(authority: Authority): 'yes' | 'port' | 'no'
}

/**
 * An allow-list: exact names, `*.name` for everything below a name (not the name itself), both with
 * an optional `:port`, and names of presets. Throws `invalid_arguments` for any other entry.
 */
export function readRules(entries: readonly string[]): Rules {
  const rules = entries.flatMap((entry) => {
    const preset = Object.entries(EGRESS_PRESETS).find(([name]) => name === entry)
    return (preset?.[1] ?? [entry]).map(readRule)
  })
  return {
    allows({ host, port }) {
      const matching = rules.filter(({ name, below }) => (below ? host.endsWith(name) : host === name))
      if (matching.length === 0) return 'no'
      return matching.some(({ ports }) => ports.includes(port)) ? 'yes' : 'port'
    },
  }
}

/** Operators may use Unicode names; the ASCII form is compared. */
function readRule(entry: string): Rule {
  const below = entry.startsWith('*.')
  const [name = '', port, ...more] = (below ? entry.slice(2) : entry).split(':')
  // The conversion would silently drop the parts of a URL after its host.
  const ascii = /[^\0-\x7f]/.test(name) && !/[/?#@\\%\s]/.test(name) ? domainToASCII(name) : name
  const read = readAuthority(port === undefined ? ascii : [ascii, port, ...more].join(':'), 0)
  if ('problem' in read)
    throw new SandboxError(
      'invalid_arguments',
      `"${entry}" cannot be allowed: ${read.problem}. Write example.org, *.example.org, example.org:8080 or one of ${Object.keys(EGRESS_PRESETS).join(', ')}.`,
    )
  return {
    name: below ? `.${read.host}` : read.host,
    below,
    ports: read.port === 0 ? USUAL_PORTS : [read.port],
  }
}
