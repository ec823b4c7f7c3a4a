import { Component, type ReactNode } from 'react'

interface Props {
  /** Shown in place of children that throw while they are drawn, or cannot be loaded. */
  fallback: ReactNode
  /** Content of the children: a change of it draws them again. */
  of?: unknown
  children: ReactNode
}

interface State {
  failed: boolean
  of: unknown
}

/** Keeps an error of one part of the page from the rest of it. */
export class Boundary extends Component<Props, State> {
  override state: State = { failed: false, of: this.props.of }

  static getDerivedStateFromError(): Partial<State> {
    return { failed: true }
  }

  static getDerivedStateFromProps({ of }: Props, state: State): State | null {
    return Object.is(of, state.of) ? null : { failed: false, of }
  }

  override render(): ReactNode {
    return this.state.failed ? this.props.fallback : this.props.children
  }
}
