/**
 * Menus, popovers and dialogs of Base UI by the names of their parts. Their code is loaded when a
 * trigger is touched, or once the page is at rest: until a root is opened first, its trigger is a
 * plain button, and nothing else of it is rendered.
 */
import {
  type ComponentPropsWithoutRef,
  type ComponentType,
  createContext,
  type ReactNode,
  type Ref,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react'

async function fetchParts() {
  const [menu, popover, dialog, alertDialog] = await Promise.all([
    import('@base-ui/react/menu'),
    import('@base-ui/react/popover'),
    import('@base-ui/react/dialog'),
    import('@base-ui/react/alert-dialog'),
  ])
  return { ...menu, ...popover, ...dialog, ...alertDialog }
}

type Parts = Awaited<ReturnType<typeof fetchParts>>

let parts: Parts | undefined

export async function loadPopups(): Promise<void> {
  parts ??= await fetchParts()
}

/** Milliseconds of hovering before the popup’s own button takes the place of the plain one. */
const HOVER_MS = 100

type By = 'press' | 'keys' | 'hover'

/** Opens a root that was never open; below one that was, how it was opened first. */
const Opening = createContext<((by: By) => void) | By>('press')

function part<Props>(pick: (parts: Parts) => ComponentType<Props>) {
  return function Part(props: Props) {
    const isOpened = typeof useContext(Opening) !== 'function'
    if (parts === undefined || !isOpened) return null
    const Loaded: ComponentType<Props> = pick(parts)
    return <Loaded {...(props as Props & {})} />
  }
}

interface RootProps {
  open?: boolean | undefined
  defaultOpen?: boolean | undefined
  children?: unknown
}

function root<Props extends RootProps>(pick: (parts: Parts) => ComponentType<Props>) {
  const Loaded = part(pick)
  return function Root(props: Props) {
    const [opened, setOpened] = useState<By>()
    const open = (by: By) => void loadPopups().then(() => setOpened(by))
    useEffect(() => {
      if (props.open === true) void loadPopups().then(() => setOpened('press'))
    }, [props.open])
    if (opened === undefined) return <Opening value={open}>{props.children as ReactNode}</Opening>
    return (
      <Opening value={opened}>
        <Loaded defaultOpen={opened === 'press'} {...props} />
      </Opening>
    )
  }
}

type TriggerProps = ComponentPropsWithoutRef<'button'> & {
  ref?: Ref<HTMLButtonElement>
  openOnHover?: boolean
  /** Milliseconds of hovering. */
  delay?: number
}

function trigger(popup: 'menu' | 'dialog', pick: (parts: Parts) => ComponentType<TriggerProps>) {
  const Loaded = part(pick)
  return function Trigger(props: TriggerProps) {
    const open = useContext(Opening)
    const button = useRef<HTMLButtonElement>(null)
    const hovering = useRef<number>(undefined)
    useEffect(() => {
      if (open !== 'keys') return
      // The same key opens a loaded menu, with the focus on its first item.
      button.current?.focus()
      button.current?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))
    }, [open])
    if (typeof open !== 'function') return <Loaded {...props} ref={button} />
    const { openOnHover, delay: _delay, ...rest } = props
    return (
      <button
        type="button"
        aria-haspopup={popup}
        aria-expanded={false}
        {...rest}
        onPointerEnter={() => {
          const loaded = loadPopups()
          if (openOnHover === true)
            void loaded.then(() => (hovering.current = window.setTimeout(() => open('hover'), HOVER_MS)))
        }}
        // A button that is replaced between press and release gets no click.
        onPointerDown={() => window.clearTimeout(hovering.current)}
        onPointerLeave={() => window.clearTimeout(hovering.current)}
        onFocus={() => void loadPopups()}
        onClick={({ detail }) => open(popup === 'menu' && detail === 0 ? 'keys' : 'press')}
      />
    )
  }
}

export const Menu = {
  Root: root(({ Menu }) => Menu.Root),
  Trigger: trigger('menu', ({ Menu }) => Menu.Trigger),
  Portal: part(({ Menu }) => Menu.Portal),
  Positioner: part(({ Menu }) => Menu.Positioner),
  Popup: part(({ Menu }) => Menu.Popup),
  Group: part(({ Menu }) => Menu.Group),
  GroupLabel: part(({ Menu }) => Menu.GroupLabel),
  Item: part(({ Menu }) => Menu.Item),
  LinkItem: part(({ Menu }) => Menu.LinkItem),
  RadioGroup: part(({ Menu }) => Menu.RadioGroup),
  RadioItem: part(({ Menu }) => Menu.RadioItem),
  RadioItemIndicator: part(({ Menu }) => Menu.RadioItemIndicator),
  Separator: part(({ Menu }) => Menu.Separator),
  SubmenuRoot: part(({ Menu }) => Menu.SubmenuRoot),
  SubmenuTrigger: part(({ Menu }) => Menu.SubmenuTrigger),
}

export const Popover = {
  Root: root(({ Popover }) => Popover.Root),
  Trigger: trigger('dialog', ({ Popover }) => Popover.Trigger),
  Portal: part(({ Popover }) => Popover.Portal),
  Positioner: part(({ Popover }) => Popover.Positioner),
  Popup: part(({ Popover }) => Popover.Popup),
  Title: part(({ Popover }) => Popover.Title),
  Description: part(({ Popover }) => Popover.Description),
  Close: part(({ Popover }) => Popover.Close),
}

export const Dialog = {
  Root: root(({ Dialog }) => Dialog.Root),
  Trigger: trigger('dialog', ({ Dialog }) => Dialog.Trigger),
  Portal: part(({ Dialog }) => Dialog.Portal),
  Backdrop: part(({ Dialog }) => Dialog.Backdrop),
  Popup: part(({ Dialog }) => Dialog.Popup),
  Title: part(({ Dialog }) => Dialog.Title),
  Close: part(({ Dialog }) => Dialog.Close),
}

export const AlertDialog = {
  Root: root(({ AlertDialog }) => AlertDialog.Root),
  Portal: part(({ AlertDialog }) => AlertDialog.Portal),
  Backdrop: part(({ AlertDialog }) => AlertDialog.Backdrop),
  Popup: part(({ AlertDialog }) => AlertDialog.Popup),
  Title: part(({ AlertDialog }) => AlertDialog.Title),
  Description: part(({ AlertDialog }) => AlertDialog.Description),
  Close: part(({ AlertDialog }) => AlertDialog.Close),
}
