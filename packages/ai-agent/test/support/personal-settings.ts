/** Settings for people in the configuration file, as the rows that it seeds. */
import { deploymentSettings } from '../../../shared/test/support/deployment-settings.ts'
import type { LimitSettings } from '../../src/limits/settings.ts'
import { promptLimits } from '../../src/limits/settings.ts'
import { settingsSeeds } from '../../src/config/user-settings.ts'
import { type PersonalSettings, SettingsRegistry } from '../../src/people/settings-registry.ts'

type Sections = Parameters<typeof settingsSeeds>[0]
type EmailOf = (userId: string) => string | undefined

export const log = { info: () => {}, warn: () => {} }

/** Not what every object has under this name. */
const own = (email: unknown): string | undefined => (typeof email === 'string' ? email : undefined)

function bookOf(file: Sections, emailOf: EmailOf, limits?: LimitSettings): SettingsRegistry {
  const { rows } = settingsSeeds(file, limits?.written.users ?? new Map())
  const known = new Map<string, { email: string | undefined; teams: string[] }>()
  const parts = {
    rows: {
      all: async () => [],
      put: async () => true,
      remove: async () => undefined,
      replace: async () => undefined,
      seed: async () => true,
    },
    people: {
      get(userId: string) {
        const person = known.get(userId) ?? { email: own(emailOf(userId)), teams: [] }
        known.set(userId, person)
        return person
      },
      all: new Map(),
    },
    deployment: deploymentSettings({ limits: limits?.written.everybody }),
    tools: [],
    problem: () => undefined,
    now: () => 0,
    log,
  }
  return new SettingsRegistry(
    parts,
    rows.map((row) => ({ ...row, revision: 1 })),
  )
}

export function personalSettings(file: Sections, emailOf: EmailOf = () => undefined): PersonalSettings {
  return bookOf(file, emailOf)
}

/** Its settings of one person about tools, mode and network. */
export function setFor(file: Sections, emailOf: EmailOf) {
  const book = bookOf(file, emailOf)
  return {
    of(userId: string) {
      const { tools, modeCeiling, network } = book.of(userId)
      return { tools, modeCeiling, network }
    },
  }
}

export function limitsFor(limits: LimitSettings, userId: string, email: string | undefined) {
  return promptLimits(bookOf({}, () => email, limits).of(userId).limits)
}
