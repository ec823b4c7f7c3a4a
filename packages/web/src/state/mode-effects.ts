import type { Mode } from '@sandlot/shared/chat/mode'

/** The effect of a participant's messages in each mode, after a name. */
export const MODE_EFFECTS: Record<Mode, string> = {
  manual: 'changes ask first',
  'auto-edit': 'edits files, commands ask first',
  auto: 'runs commands if there’s no network',
  yolo: 'runs without asking',
}
