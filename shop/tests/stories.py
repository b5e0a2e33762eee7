"""What happens in a shop, for tests: events of visits, written to a database or told to a learner."""

from rlsvi_shop.events import Event


def write(events, *rows):
    """Write events in one transaction, and return their numbers."""
    with events.writing() as writer:
        return writer.append(rows)


def visit(name, closed=True, **answers):
    """The events of a visit that is shown these products and answers them; None is no answer."""
    rows = []
    for slot, (product, reward) in enumerate(answers.items()):
        rows.append(Event("recommended", name, product, slot))
        if reward is not None:
            rows.append(Event("answered", name, product, reward=reward))
    return [*rows, Event("closed", name)] if closed else rows


def tell(learner, *events):
    """Let a learner take events, in this order."""
    for event in events:
        learner.take(event._replace(id=learner.last + 1))
