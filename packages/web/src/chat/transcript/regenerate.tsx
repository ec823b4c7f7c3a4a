/** Another answer to the same words, also of another model. */
import { ChevronDown, RefreshCw } from 'lucide-react'
import { type RefObject, useRef } from 'react'
import { cn } from '../../lib/cn.ts'
import { useChat } from '../../state/chat-context.ts'
import { hasChoice } from '../../state/model-choice.ts'
import { saidIn, useBranches, useMayResend } from './branches.ts'
import { ACTION } from './message-action.ts'
import { Menu } from '../../ui/on-demand.tsx'

export function Regenerate(props: { sessionId: string; promptId: string | undefined }) {
  const { sessionId, promptId } = props
  const { me, chat } = useChat()
  const { resend } = useBranches()
  const may = useMayResend(sessionId, promptId)
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLDivElement>(null)
  if (!may || promptId === undefined || resend === undefined) return null
  const answerAgain = (model?: string) => {
    const view = chat.store.getState().views[sessionId]
    const said = view === undefined ? [] : saidIn(view.transcript, promptId)
    const texts = said.map(({ text }) => text).filter((text) => text !== '')
    const images = said.flatMap((message) => message.images ?? [])
    void resend(promptId, { text: texts.join('\n\n'), images }, model)
  }
  return (
    <div ref={host} className="contents">
      <button
        type="button"
        aria-label="Answer again"
        title="Answer again"
        onClick={() => answerAgain()}
        className={ACTION}
      >
        <RefreshCw className="size-3.5" aria-hidden />
      </button>
      {hasChoice(me) && <OtherModels host={host} onChoose={answerAgain} />}
    </div>
  )
}

function OtherModels(props: { host: RefObject<HTMLElement | null>; onChoose: (model: string) => void }) {
  const { me } = useChat()
  return (
    <Menu.Root>
      <Menu.Trigger
        aria-label="Answer again with another model"
        title="Answer again with another model"
        className={cn(ACTION, '-ml-1 min-w-5 data-popup-open:opacity-100')}
      >
        <ChevronDown className="size-3" aria-hidden />
      </Menu.Trigger>
      <Menu.Portal container={props.host}>
        <Menu.Positioner positionMethod="fixed" side="bottom" align="start" sideOffset={6} className="z-50">
          <Menu.Popup className="popup max-h-[60vh] w-64 max-w-[calc(100vw-2rem)] overflow-y-auto rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
            <Menu.Group>
              <Menu.GroupLabel className="px-2.5 pt-1.5 pb-1 text-xs text-faint">
                Answer again, and continue, with
              </Menu.GroupLabel>
              {(me.models ?? []).map(({ name }) => (
                <Menu.Item
                  key={name}
                  onClick={() => props.onChoose(name)}
                  className="flex w-full cursor-pointer items-center rounded-lg px-2.5 py-1.5 text-sm outline-none pointer-coarse:min-h-11 data-highlighted:bg-hover"
                >
                  <span className="min-w-0 flex-1 truncate">{name}</span>
                </Menu.Item>
              ))}
            </Menu.Group>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  )
}
