import { FlaskConical, Plus } from 'lucide-react'
import { useRef } from 'react'
import { Link } from 'wouter'
import { useChat } from '../state/chat-context.ts'
import { Popover } from '../ui/on-demand.tsx'

/**
 * Without a model of one's own the demo model answers. Its words must not be taken for a real
 * one's.
 */
export function DemoExplanation() {
  const { me } = useChat()
  return (
    <>
      <p>
        No model yet. The built-in <strong className="font-semibold text-ink">demo model</strong> follows a
        script. The tools it calls are real and run in your sandbox.
      </p>
      {me.role === 'admin' ? (
        <>
          <p>
            Add any OpenAI-compatible endpoint: a provider’s, or your own Ollama, vLLM or LM Studio. Or set{' '}
            <code className="text-ink">OPENAI_BASE_URL</code>, <code className="text-ink">OPENAI_MODEL</code>{' '}
            and <code className="text-ink">OPENAI_API_KEY</code> and restart Sandlot.
          </p>
          <p>
            <Link
              href="/settings/models"
              className="inline-flex h-9 items-center gap-2 rounded-lg bg-accent px-3.5 text-sm font-medium text-accent-ink shadow-1 hover:bg-accent-strong pointer-coarse:h-11"
            >
              <Plus className="size-4" aria-hidden /> Add a model
            </Link>
          </p>
        </>
      ) : (
        <p>Ask your administrator to add a model.</p>
      )}
    </>
  )
}

/** The label beside the composer. */
export function DemoBadge() {
  const host = useRef<HTMLDivElement>(null)
  return (
    <div ref={host} className="min-w-0">
      <Popover.Root>
        <Popover.Trigger
          data-testid="demo-model"
          className="relative inline-flex h-6 max-w-full pointer-coarse:after:absolute pointer-coarse:after:-inset-y-2.5 pointer-coarse:after:inset-x-0 items-center gap-1.5 rounded-full border border-waiting-line bg-waiting-wash px-2 text-xs font-medium text-waiting"
        >
          <FlaskConical className="size-3 shrink-0" aria-hidden />
          <span className="truncate">Demo model</span>
        </Popover.Trigger>
        <Popover.Portal container={host}>
          <Popover.Positioner
            positionMethod="fixed"
            side="top"
            align="start"
            sideOffset={10}
            className="z-50"
          >
            <Popover.Popup className="popup flex w-88 max-w-[calc(100vw-2rem)] flex-col gap-2.5 rounded-xl border border-line bg-raised p-4 text-sm text-muted shadow-3 outline-none">
              <Popover.Title className="text-sm font-semibold text-ink">This is a demo</Popover.Title>
              <DemoExplanation />
            </Popover.Popup>
          </Popover.Positioner>
        </Popover.Portal>
      </Popover.Root>
    </div>
  )
}
