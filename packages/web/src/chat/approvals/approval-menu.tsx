/**
 * The rarer answers to an approval: those that are remembered, each with exactly what will be, and
 * a denial in words.
 */
import { type Remembered, describeMatch } from '@sandlot/shared/chat/rules'
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import { ChevronDown, MessageSquareX } from 'lucide-react'
import { useRef } from 'react'
import { Revealed } from '../../ui/revealed.tsx'
import { Menu } from '../../ui/on-demand.tsx'

const SCOPE: Record<Remembered['scope'], string> = {
  prompt: 'Allow for this message',
  session: 'Allow for this chat',
  always: 'Always allow',
}
const ITEM =
  'flex cursor-pointer flex-col gap-0.5 rounded-lg px-2.5 py-1.5 text-sm outline-none data-highlighted:bg-hover pointer-coarse:min-h-11 pointer-coarse:justify-center'

type RememberingOption = PermissionOption & { remembers: Remembered }

export function ApprovalMenu(props: {
  options: readonly RememberingOption[]
  disabled: boolean
  onAnswer: (option: PermissionOption) => void
  /** Absent: nothing can be denied. */
  onExplain: (() => void) | undefined
}) {
  // Inside the page’s landmark, and outside of its row, which clips what it paints.
  const host = useRef<HTMLElement>(null)
  return (
    <div
      ref={(node) => {
        host.current = node?.closest('main') ?? null
      }}
    >
      <Menu.Root>
        <Menu.Trigger
          aria-label="More options"
          title="More options: remember, or deny with a reason"
          disabled={props.disabled}
          className="inline-flex h-8 w-8 items-center justify-center rounded-lg border border-line-strong bg-raised text-muted shadow-1 hover:bg-hover hover:text-ink disabled:opacity-50 data-popup-open:bg-hover pointer-coarse:size-11"
        >
          <ChevronDown className="size-4" aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="bottom" align="end" sideOffset={4} className="z-50">
            <Menu.Popup className="popup w-80 max-w-[calc(100vw-2rem)] rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
              {props.options.map((option) => (
                <RememberedAnswer key={option.optionId} option={option} onAnswer={props.onAnswer} />
              ))}
              {props.options.length > 0 && props.onExplain !== undefined && (
                <Menu.Separator className="my-1 h-px bg-line" />
              )}
              {props.onExplain !== undefined && (
                <Menu.Item className={ITEM} onClick={props.onExplain}>
                  <span className="flex items-center gap-2 font-medium">
                    <MessageSquareX className="size-4 text-muted" aria-hidden /> Deny and explain…
                  </span>
                </Menu.Item>
              )}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  )
}

function RememberedAnswer(props: {
  option: RememberingOption
  onAnswer: (option: PermissionOption) => void
}) {
  const { option } = props
  return (
    <Menu.Item
      data-option-kind={option.kind}
      data-option-id={option.optionId}
      className={ITEM}
      onClick={() => props.onAnswer(option)}
    >
      <span className="font-medium">{SCOPE[option.remembers.scope]}</span>
      {option.remembers.rules.map((match) => (
        <span
          key={JSON.stringify(match)}
          className="line-clamp-3 text-xs whitespace-pre-line text-muted [overflow-wrap:anywhere]"
        >
          <Revealed text={describeMatch(match)} />
        </span>
      ))}
    </Menu.Item>
  )
}
