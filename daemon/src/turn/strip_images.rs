//! Conversations for models that cannot see: images go, and the model is told so.

use loopd_kernel::model::{ModelMessage, Part};

/// Stands in a user's message where an image was.
const NOTE: &str = "[An image was attached here. This model cannot see images.]";

/// How a user's own message begins; what tools found has no date.
const USER_MESSAGE: &str = "<current_datetime>";

/// Leaves out the images that tools found, and puts a note in the place of those users attached.
pub(super) fn strip_images(messages: &mut Vec<ModelMessage>) {
    messages.retain(|message| !is_found_image(message));
    for message in messages {
        let ModelMessage::User(parts) = message else {
            continue;
        };
        for part in parts {
            if matches!(part, Part::Image { .. }) {
                *part = Part::Text(NOTE.to_owned());
            }
        }
    }
}

/// An image that a tool found is a message of its own, with at most a label before it.
fn is_found_image(message: &ModelMessage) -> bool {
    let ModelMessage::User(parts) = message else {
        return false;
    };
    match parts.as_slice() {
        [Part::Image { .. }] => true,
        [Part::Text(label), Part::Image { .. }] => !label.starts_with(USER_MESSAGE),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    fn image() -> Part {
        Part::Image {
            media_type: "image/png".to_owned(),
            base64: "AAAA".to_owned(),
        }
    }

    #[test]
    fn found_images_go_and_attached_ones_leave_a_note() {
        let asked = "<current_datetime>now</current_datetime>\n\nwhat is it?";
        let mut messages = vec![
            ModelMessage::User(vec![text(asked), text("a.png"), image()]),
            ModelMessage::User(vec![text(asked), image()]),
            ModelMessage::User(vec![text("Image file at path /a.png"), image()]),
            ModelMessage::User(vec![image()]),
            ModelMessage::User(vec![text("bye")]),
        ];
        strip_images(&mut messages);
        assert_eq!(
            messages,
            [
                ModelMessage::User(vec![text(asked), text("a.png"), text(NOTE)]),
                ModelMessage::User(vec![text(asked), text(NOTE)]),
                ModelMessage::User(vec![text("bye")]),
            ]
        );
    }
}
