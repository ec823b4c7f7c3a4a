import { Popover } from '@base-ui/react/popover'
import { FlaskConical } from 'lucide-react'
import { useRef } from 'react'

const EXAMPLE = `OPENAI_BASE_URL=https://…/v1
OPENAI_MODEL=…
OPENAI_API_KEY=…`

/**
 * Without a model of one's own the demo model answers. Its words must not be taken for a real
 * one's.
 */
export function DemoExplanation() {
  return (
    <>
      <p>
        No model is configured, so a built-in <strong className="font-semibold text-ink">demo model</strong>{' '}
        answers. It follows a script; the tools it calls are real and run in your sandbox.
      </p>
      <p>
        For a real one, name any OpenAI-compatible endpoint in the file <code className="text-ink">.env</code>{' '}
        of Sandlot’s own folder, the one with <code className="text-ink">README.md</code> in it (with compose:{' '}
        <code className="text-ink">docker/.env</code>), and start Sandlot again:
      </p>
      <pre
        className="code overflow-x-auto rounded-md border border-line bg-sunken px-3 py-2 text-ink"
        tabIndex={0}
      >
        {EXAMPLE}
      </pre>
    </>
  )
}

/** The label beside the composer. */
export function DemoBadge() {
  const host = useRef<HTMLDivElement>(null)
  return (
    <div ref={host}>
      <Popover.Root>
        <Popover.Trigger
          data-testid="demo-model"
          className="relative inline-flex h-6 pointer-coarse:after:absolute pointer-coarse:after:-inset-y-2.5 pointer-coarse:after:inset-x-0 items-center gap-1.5 rounded-full border border-waiting-line bg-waiting-wash px-2 text-xs font-medium text-waiting"
        >
          <FlaskConical className="size-3" aria-hidden />
          Demo model
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
