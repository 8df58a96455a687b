"""The token bucket."""

from autobot_mcp_bridge.model.budget import Budget


def test_a_budget_gives_its_burst_and_then_its_rate():
    budget = Budget(rate=100, burst=200, at=0.0)

    assert sum(budget.take(0.0) for _ in range(1000)) == 200
    assert sum(budget.take(0.5) for _ in range(1000)) == 50
    assert sum(budget.take(100.0) for _ in range(1000)) == 200


def test_a_large_expense_is_paid_back_before_the_next():
    budget = Budget(rate=10, burst=20, at=0.0)

    assert budget.take(0.0, 120)
    assert not budget.take(10.0)
    assert budget.take(10.2)
