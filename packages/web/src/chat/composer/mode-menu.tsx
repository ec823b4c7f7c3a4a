import { MODES, type Mode, isWithin } from '@sandlot/shared/chat/mode'
import { Box, Check, ChevronDown, type LucideIcon, PencilLine, ShieldCheck, Zap } from 'lucide-react'
import { useRef } from 'react'
import { cn } from '../../lib/cn.ts'
import { useChat } from '../../state/chat-context.ts'
import { Menu } from '../../ui/on-demand.tsx'

export const MODE_WORDS: Record<Mode, { name: string; means: string; icon: LucideIcon }> = {
  manual: { name: 'Manual', means: 'Reads run. Everything else asks.', icon: ShieldCheck },
  'auto-edit': {
    name: 'Auto-edit',
    means: 'Reads and file edits run. Commands ask.',
    icon: PencilLine,
  },
  auto: {
    name: 'Auto',
    means:
      'Commands run too if the sandbox has no network. Commands that visibly delete files outside git ask first; scripts aren’t inspected.',
    icon: Box,
  },
  yolo: { name: 'YOLO', means: 'Everything runs unless a rule denies it.', icon: Zap },
}

function isMode(value: unknown): value is Mode {
  return MODES.some((mode) => mode === value)
}

/** Says why a mode cannot be chosen; undefined where it can. */
function modeRefusal(ceiling: Mode | undefined, mode: Mode): string | undefined {
  return isWithin(ceiling, mode)
    ? undefined
    : `Your administrator limits you to ${MODE_WORDS[ceiling ?? mode].name}.`
}

export function ModeMenu(props: { mode: Mode; onChange: (mode: Mode) => void }) {
  const { me } = useChat()
  const words = MODE_WORDS[props.mode]
  const Icon = words.icon
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLDivElement>(null)
  return (
    <div ref={host}>
      <Menu.Root>
        <Menu.Trigger
          aria-label={`Approval mode: ${words.name}`}
          data-testid="mode"
          data-mode={props.mode}
          className="inline-flex h-8 pointer-coarse:h-11 items-center gap-1.5 rounded-lg px-2 text-xs font-medium text-muted hover:bg-hover hover:text-ink data-popup-open:bg-hover"
        >
          <Icon className={cn('size-3.5', props.mode === 'yolo' && 'text-waiting')} aria-hidden />
          {words.name}
          <ChevronDown className="size-3 text-faint" aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="top" align="start" sideOffset={8} className="z-50">
            <Menu.Popup className="popup w-72 max-w-[calc(100vw-2rem)] rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
              <Menu.RadioGroup
                value={props.mode}
                onValueChange={(value) => isMode(value) && props.onChange(value)}
              >
                {MODES.map((mode) => (
                  <ModeItem key={mode} mode={mode} refusal={modeRefusal(me.modeCeiling, mode)} />
                ))}
              </Menu.RadioGroup>
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  )
}

function ModeItem(props: { mode: Mode; refusal: string | undefined }) {
  const words = MODE_WORDS[props.mode]
  const Icon = words.icon
  return (
    <Menu.RadioItem
      value={props.mode}
      closeOnClick
      disabled={props.refusal !== undefined}
      className="group flex w-full cursor-pointer items-start gap-2.5 rounded-lg px-2.5 py-2 outline-none data-disabled:cursor-not-allowed data-highlighted:bg-hover"
    >
      <Icon className="mt-0.5 size-4 shrink-0 text-muted group-data-disabled:text-faint" aria-hidden />
      <span className="min-w-0 flex-1">
        <span className="block text-sm font-medium group-data-disabled:text-faint">{words.name}</span>
        <span className="block text-xs text-muted">{props.refusal ?? words.means}</span>
      </span>
      <Menu.RadioItemIndicator>
        <Check className="mt-0.5 size-4 text-accent" aria-hidden />
      </Menu.RadioItemIndicator>
    </Menu.RadioItem>
  )
}
