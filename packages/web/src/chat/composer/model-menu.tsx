/** Which model answers, and how hard it thinks, where there is something to choose. */
import type { Me } from '@sandlot/shared/account/api'
import { Check, ChevronDown } from 'lucide-react'
import { useRef } from 'react'
import { type ModelChoice, aboutModel, withModel } from '../../state/model-choice.ts'
import { Menu } from '../../ui/on-demand.tsx'

export function ModelMenu(props: { me: Me; choice: ModelChoice; onChange: (choice: ModelChoice) => void }) {
  const { me, choice, onChange } = props
  const levels = aboutModel(me, choice.model)?.thoughtLevels ?? []
  const level = choice.thoughtLevel === null ? '' : `, ${choice.thoughtLevel}`
  // Inside the page’s landmark, not at the end of the body.
  const host = useRef<HTMLDivElement>(null)
  return (
    <div ref={host} className="min-w-0">
      <Menu.Root>
        <Menu.Trigger
          aria-label={`Model: ${choice.model}${level}`}
          data-testid="model"
          className="inline-flex h-8 pointer-coarse:h-11 max-w-full items-center gap-1.5 rounded-lg px-2 text-xs font-medium text-muted hover:bg-hover hover:text-ink data-popup-open:bg-hover"
        >
          <span className="truncate">
            {choice.model}
            {level}
          </span>
          <ChevronDown className="size-3 shrink-0 text-faint" aria-hidden />
        </Menu.Trigger>
        <Menu.Portal container={host}>
          <Menu.Positioner positionMethod="fixed" side="top" align="start" sideOffset={8} className="z-50">
            <Menu.Popup className="popup max-h-[60vh] w-64 max-w-[calc(100vw-2rem)] overflow-y-auto rounded-xl border border-line bg-raised p-1.5 shadow-3 outline-none">
              <Menu.Group>
                <Heading>Model (from your next message)</Heading>
                <Menu.RadioGroup
                  value={choice.model}
                  onValueChange={(value: string) => onChange(withModel(me, choice, value))}
                >
                  {(me.models ?? []).map(({ name }) => (
                    <Item key={name} value={name}>
                      {name}
                    </Item>
                  ))}
                </Menu.RadioGroup>
              </Menu.Group>
              {levels.length > 0 && (
                <Menu.Group>
                  <Heading>Reasoning effort</Heading>
                  <Menu.RadioGroup
                    value={choice.thoughtLevel}
                    onValueChange={(value: string | null) => onChange({ ...choice, thoughtLevel: value })}
                  >
                    <Item value={null}>Automatic</Item>
                    {levels.map((name) => (
                      <Item key={name} value={name}>
                        {name}
                      </Item>
                    ))}
                  </Menu.RadioGroup>
                </Menu.Group>
              )}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  )
}

function Heading(props: { children: string }) {
  return <Menu.GroupLabel className="px-2.5 pt-1.5 pb-1 text-xs text-faint">{props.children}</Menu.GroupLabel>
}

function Item(props: { value: string | null; children: string }) {
  return (
    <Menu.RadioItem
      value={props.value}
      closeOnClick
      className="flex w-full cursor-pointer items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-sm outline-none pointer-coarse:min-h-11 data-highlighted:bg-hover"
    >
      <span className="min-w-0 flex-1 truncate">{props.children}</span>
      <Menu.RadioItemIndicator>
        <Check className="size-4 text-accent" aria-hidden />
      </Menu.RadioItemIndicator>
    </Menu.RadioItem>
  )
}
