/** Every whole conversation that is played. */
import { ENDINGS } from './endings.ts'
import { INTERRUPTIONS } from './interruptions.ts'
import { QUIRKS } from './quirks.ts'
import type { Script } from './run-script.ts'

export const SCRIPTS: readonly Script[] = [...QUIRKS, ...ENDINGS, ...INTERRUPTIONS]
